"""What each method costs: time per image through `Adapter` and `predict_at`, peak memory, and against torch-ttt.

    python benchmarks/methods.py --out results/speed/methods [--images 1000] [--batch 128] [--threads 1] [--quick]

Digits and test images of CIFAR-10, each under three corruptions at severity 5. Every method adapts to all of them
through `Adapter`, in four steps at most; on every third batch `predict_at`, and the engines of the same name of the
package torch-ttt if it is installed, take their turns, too, in reverse on every other of these. Medians over batches
count, for a peer that of its ratio to our `Adapter` on the same batch. Times are processor time, so that other
processes on the machine disturb them little. Each library is used as its documentation says: the peer gets the network
in PyTorch's usual layout, ours chooses its own. Both sides do equal work: the same steps, views, parameters that move
and optimizer, Adam; `torch_ttt_adapting.py` lists what differs. TTT's peer is timed with our rotation head, which is
equal work, and with the shallow one that it makes by itself. Peak memory is measured in processes of their own (Linux
only). The networks are the zoo's, TTT-MAE's is a vision transformer; methods for which the zoo has no model get a
branch that is not trained, which changes nothing in these figures.
`--quick` takes two batches of digits under one corruption.
"""

import argparse
import csv
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from cost import seconds
from methods_timed import EQUAL, OWN_HEAD, SAME_HEAD, Timed, all_methods, timed_ways
from torch import Tensor

from ncttt.base.provenance import origin
from ncttt.data import batches, load

CORRUPTIONS = ("gaussian_noise", "defocus_blur", "contrast")
COLUMNS = ("set", "corruption", "method", "way", "ms_per_image", "peer_ratio", "peak_mib")
ALL_WAYS_EVERY = 3  # batches; on those between, the `Adapter` alone works
Row = dict[str, Any]


def corrupted_batches(name: str, corruption: str, options: argparse.Namespace) -> Iterator[Tensor]:
    """Whole batches of the first images of the test split."""
    data = load(name, "test", options.root if name == "cifar10" else None, corruption=corruption, severity=5)
    count = min(len(data), 2 * options.batch if options.quick else options.images)
    for images, _ in batches(data.subset(range(count)), options.batch, drop_last=True):
        yield images


def measure(name: str, corruption: str, options: argparse.Namespace, ways: list[Timed]) -> list[Row]:
    """A row for each way: the median time per image, and for a peer the median ratio to our Adapter."""
    times: dict[str, list[float]] = {way.label: [] for way in ways}
    for turn, images in enumerate(corrupted_batches(name, corruption, options)):
        taking_part = [way for way in ways if way.name == "Adapter" or turn % ALL_WAYS_EVERY == 0]
        for way in taking_part[:: 1 if turn // ALL_WAYS_EVERY % 2 else -1]:
            ready = way.prepare(images)
            times[way.label].append(seconds(lambda way=way, ready=ready: way.run(ready)))
    print(f"{name}, {corruption}: measured", file=sys.stderr, flush=True)
    rows = []
    for way in ways:
        row: Row = {"set": name, "corruption": corruption, "method": way.method, "way": way.name}
        row["ms_per_image"] = 1000 * statistics.median(times[way.label]) / options.batch
        if way.name in (SAME_HEAD, OWN_HEAD):
            pairs = zip(times[way.label], times[f"{way.method}/{EQUAL}"], strict=True)
            row["peer_ratio"] = statistics.median(theirs / ours for theirs, ours in pairs)
        rows.append(row)
    return rows


def measure_set(name: str, options: argparse.Namespace) -> list[Row]:
    first = next(corrupted_batches(name, CORRUPTIONS[0], options))
    labels = options.methods or all_methods()
    ways = [way for label in labels for way in timed_ways(label, name, first)]
    for way in ways:
        way.run(way.prepare(first))
    rows = [row for c in CORRUPTIONS[: 1 if options.quick else None] for row in measure(name, c, options, ways)]
    # The ways of ours differ in nothing that takes memory, so one of them is enough.
    shown = ("Adapter", SAME_HEAD, OWN_HEAD)
    memory = {way.label: peak_memory(way.label, name, options) for way in ways if way.name in shown}
    return [row | {"peak_mib": memory.get(f"{row['method']}/{row['way']}", "")} for row in rows]


def peak_memory(label: str, name: str, options: argparse.Namespace) -> float:
    """Peak MiB of a fresh process that adapts to two batches, network and images included."""
    command = [sys.executable, __file__, "--memory-of", label, "--sets", name, "--batch", str(options.batch)]
    command += ["--threads", str(options.threads)]
    if options.root is not None:
        command += ["--root", str(options.root)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])


def memory_of(label: str, options: argparse.Namespace) -> float:
    first = next(corrupted_batches(options.sets[0], CORRUPTIONS[0], options))
    ways = timed_ways(label.split("/")[0], options.sets[0], first)
    (way,) = [way for way in ways if way.label == label]
    ready = way.prepare(first)
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak of building all this
    way.run(ready), way.run(ready)
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1024


def table(rows: list[Row], facts: dict[str, Any]) -> str:
    """One line a set and method: medians over the corruptions."""
    lines = [
        "| set | method | `Adapter` ms/image | `predict_at` ms/image | MiB | torch-ttt / ours | own head | its MiB |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name, method in dict.fromkeys((row["set"], row["method"]) for row in rows):
        own = [row for row in rows if (row["set"], row["method"]) == (name, method)]

        def middle(way: str, column: str, form: str, own: list[Row] = own) -> str:
            values = [row[column] for row in own if row["way"] == way]
            return format(statistics.median(values), form) if values else ""

        times = [middle(way, "ms_per_image", ".3f") for way in ("Adapter", "predict_at")]
        peer = [middle(way, "peer_ratio", ".2f") for way in (SAME_HEAD, OWN_HEAD)]
        peer.append(middle(SAME_HEAD, "peak_mib", ".0f"))
        cells = [name, method, *times, middle("Adapter", "peak_mib", ".0f"), *peer]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", ", ".join(f"{key} {value}" for key, value in facts.items())]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="path of the .md and .csv without the ending; printed only by default")
    parser.add_argument("--sets", nargs="+", choices=("digits", "cifar10"), default=["digits", "cifar10"])
    parser.add_argument("--methods", nargs="+", choices=all_methods(), help="all by default")
    parser.add_argument("--images", type=int, default=1000, help="of each set under each corruption, in whole batches")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--root", help="where CIFAR-10 lies; default as in `ncttt data get`")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--memory-of", help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.memory_of:
        print(memory_of(options.memory_of, options))
        return
    sets = ["digits"] if options.quick else options.sets
    rows = [row for name in sets for row in measure_set(name, options)]
    facts = {"images": options.images, "batch": options.batch, "threads": torch.get_num_threads(), **origin()}
    print(table(rows, facts))
    if options.out:
        options.out.with_suffix(".md").write_text(table(rows, facts))
        with options.out.with_suffix(".csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, [*COLUMNS, *facts], lineterminator="\n", restval="")
            writer.writeheader()
            rounded = ({k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()} for row in rows)
            writer.writerows(row | facts for row in rounded)


if __name__ == "__main__":
    main()
