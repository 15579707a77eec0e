"""Whether any method is slower than torch-ttt's engine of its name; it ends with exit code 1 if one is.

    python benchmarks/never_slower.py [--methods tent eata] [--rounds 5]

One step of each on a batch of digits under noise, with the zoo's networks for CIFAR-10, on one thread. Both sides take
turns; the ratio is the median over rounds of the peer's processor time to ours, so that other processes on the machine
disturb it little. The first round warms up. `methods.py` measures the same and more at length.
"""

import argparse
import statistics
import sys
from collections.abc import Sequence

import torch
from cost import seconds
from methods_timed import EQUAL, PEERS, SAME_HEAD, timed_ways

import ncttt

METHODS = [label for label in PEERS if label != "ttt pooled"]  # which does less of the same
BATCH = 64


def peer_ratio(label: str, rounds: int = 5) -> float:
    """How many times as long as ours torch-ttt's engine takes for a step."""
    data = ncttt.data.load("digits", "test", corruption="gaussian_noise", severity=5)
    images, _ = next(iter(ncttt.data.batches(data, BATCH)))
    ways = {way.name: way for way in timed_ways(label, "cifar10", images, steps=1)}
    ours, theirs = ways[EQUAL], ways[SAME_HEAD]
    ratios = []
    for turn in range(rounds):
        taken = {}
        for way in (ours, theirs)[:: 1 if turn % 2 else -1]:
            ready = way.prepare(images)
            taken[way] = seconds(lambda way=way, ready=ready: way.run(ready))
        ratios.append(taken[theirs] / taken[ours])
    return statistics.median(ratios[1:])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    slower = []
    for label in options.methods:
        ratio = peer_ratio(label, options.rounds)
        print(f"{label:10} torch-ttt / ours {ratio:.2f}", flush=True)
        slower += [label] if ratio < 1 else []
    sys.exit(f"slower than torch-ttt: {', '.join(slower)}" if slower else 0)


if __name__ == "__main__":
    main()
