"""What serving costs and keeps, on loopback: throughput, latency, memory, many streams, a drifting stream.

    python benchmarks/serving.py [throughput] [latency] [memory] [streams] [drift] [--seconds 10] [--out FILE]

The service is a process for HTTP and one for the model, which has one thread; this one sends requests that were encoded
beforehand, one image each, over as many connections as there are clients, and notes what share of a core that costs.

- `throughput` compares images per second with those of an `Adapter` with one thread that is called with the
  very batches that the service formed, in their order; both take turns. What other processes took meanwhile is noted.
- `latency` splits the time of many clients and of one into the service's parts.
- `memory` is that of the service, after batches of many sizes and at ten points of `--requests` requests: at once,
  and after two seconds without requests.
- `streams` sends an image of each of a thousand streams, twice.
- `drift` sends CIFAR-10 test images one by one: clean, noise, blur, clean; an `Adapter` predicts the same.

With `--out` parts that were measured before stay in the file.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from serving_load import Load, encoded, send

import ncttt
from ncttt.base.provenance import origin

MODEL = "cifar10-small-ncttt"
LEARNING = ("--steps", "2", "--lr", "1e-3")
KINDS = ("clean", "gaussian_noise")
PHASES = ("clean", "gaussian_noise", "defocus_blur", "clean")
TICKS = os.sysconf("SC_CLK_TCK")


def main() -> None:
    parts: dict[str, Callable[[Any], Any]] = {
        part.__name__: part for part in (throughput, latency, memory, streams, drift)
    }
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=list(parts))
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each turn of throughput, and of latency")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--requests", type=int, default=100_000, help="of memory")
    parser.add_argument("--images", type=int, default=1000, help="of each phase of the drifting stream")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    given = {name: value for name, value in vars(options).items() if name not in ("parts", "out")}
    torch.set_num_threads(1)
    found = json.loads(options.out.read_text()) if options.out and options.out.exists() else {}
    for name in options.parts:
        found[name] = {"found": parts[name](options), "options": given, **origin()}
        print(name, json.dumps(found[name], indent=2))
        if options.out:
            options.out.write_text(json.dumps(found, indent=2) + "\n")


def throughput(options: Any) -> dict[str, Any]:
    """Images per second of many clients of one stream, and of an adapter with batches of the same sizes, in turns."""
    found = {}
    for kind in KINDS:
        images = test_images(kind, 512)
        requests = [encoded(image, "camera") for image in images]
        tensor, alone, turns = tensor_of(images), adapter(), []
        with served(*LEARNING) as (port, process):
            batches = batches_of(send(port, requests, options.clients, seconds=3))  # both are warm, and in one state
            adapter_rate(alone, tensor, batches)
            for _ in range(options.turns):
                with Others(process) as beside:
                    load = send(port, requests, options.clients, options.seconds)
                batches = batches_of(load)
                with Others(process) as alone_beside:
                    rate = adapter_rate(alone, tensor, batches)
                sizes = [len(batch) for batch in batches]
                turns.append(turn_of(load, sizes, rate) | {"others": beside.cores, "others_alone": alone_beside.cores})
        ratios = [turn["ratio"] for turn in turns]
        found[kind] = {"ratio": statistics.median(ratios), "range": [min(ratios), max(ratios)], "turns": turns}
    return found


def turn_of(load: Load, sizes: list[int], alone: float) -> dict[str, Any]:
    rate = len(load.answers) / load.seconds
    return {
        "ratio": rate / alone,
        "images_per_second": rate,
        "adapter_images_per_second": alone,
        "mean_batch": statistics.mean(sizes),
        "outcomes": Counter(answer["outcome"] for answer in load.answers),
        "load_generator_cores": load.cores,
    }


def latency(options: Any) -> dict[str, Any]:
    """Milliseconds of a request seen by its client and by the service, with many clients and with one."""
    found = {}
    for kind in KINDS:
        requests = [encoded(image, "camera") for image in test_images(kind, 512)]
        with served(*LEARNING) as (port, _):
            for clients in (options.clients, 1):
                send(port, requests, clients, most=1000)  # warm
                answers = send(port, requests, clients, options.seconds).answers
                found[f"{kind}, {clients} clients"] = parts_of(answers)
    return found


def parts_of(answers: list[dict[str, Any]]) -> dict[str, Any]:
    """Quantiles of the time that a client waits, and of where it goes."""
    times = [answer["milliseconds"] for answer in answers]
    values = {
        "client": [answer["client_ms"] for answer in answers],
        "waiting": [each["waiting"] for each in times],
        "model": [each["model"] for each in times],
        "waiting + model": [each["waiting"] + each["model"] for each in times],
        "rest of the service": [each["total"] - each["waiting"] - each["model"] for each in times],
        "outside of the service": [answer["client_ms"] - answer["milliseconds"]["total"] for answer in answers],
    }
    return {"requests": len(answers), **{name: quantiles(each) for name, each in values.items()}}


def memory(options: Any) -> dict[str, Any]:
    """Memory of a service that has learnt and answered for a while, and of one that left all to the source model."""
    found = {}
    for kind, share in zip(KINDS, (1, 0.05), strict=True):
        requests = [encoded(image, "camera") for image in test_images(kind, 512)]
        piece = int(options.requests * share) // 10
        with served(*LEARNING) as (port, process):
            start = memory_of(process)
            for clients in range(2, options.clients + 1, 2):  # batches of many sizes: kernels of each are kept
                send(port, requests, clients, most=2 * clients)
            at_work, at_rest = [memory_of(process)], [memory_at_rest(process)]
            for _ in range(10):
                send(port, requests, options.clients, most=piece)
                at_work.append(memory_of(process))
                at_rest.append(memory_at_rest(process))
        found[kind] = {
            "requests_between_readings": piece,
            "mib_at_start": start,
            "mib_at_work": at_work,
            "mib_at_rest": at_rest,
            "growth_at_work": at_work[-1] / at_work[1] - 1,
            "growth_at_rest": at_rest[-1] / at_rest[1] - 1,
        }
    return found


def memory_at_rest(process: int) -> float:
    """Memory after two seconds without requests, when what is free went back to the system."""
    time.sleep(2)
    return memory_of(process)


def streams(options: Any) -> dict[str, Any]:
    """A thousand streams with 32 in memory: memory and time of the first and of the second image of each."""
    images = test_images("gaussian_noise", 1000)
    requests = [encoded(image, f"s{number}") for number, image in enumerate(images)]
    with served("--wait-ms", "0", "--hot-streams", "32") as (port, process):
        found: dict[str, Any] = {"memory_before_mib": memory_of(process)}
        for turn in ("first", "second"):
            load = send(port, requests, 8, most=len(requests))
            found |= {
                f"{turn}_ms_per_request": 1000 * load.seconds / len(load.answers),
                f"{turn}_memory_mib": memory_of(process),
            }
        found["versions"] = Counter(str(answer["version"]) for answer in load.answers)
    return found


def drift(options: Any) -> dict[str, Any]:
    """Accuracy of each phase of a drifting stream, one image a request, and of an adapter that gets the same images."""
    phases, alone, labels = [], adapter(), test_labels(options.images)
    with served(*LEARNING, "--wait-ms", "0") as (port, _):
        for place, kind in enumerate(PHASES, 1):
            images = test_images(kind, options.images)
            answers = send(port, [encoded(image, "camera") for image in images], 1, most=len(images)).answers
            rows = [answer["predictions"][0] for answer in answers]
            predicted = {name: [row[name] for row in rows] for name in ("label", "source_label")}
            predicted["adapter"] = [str(test_classes()[alone(image[None]).argmax()]) for image in tensor_of(images)]
            right = {name: share_equal(given, labels) for name, given in predicted.items()}
            phases.append(
                {
                    "phase": f"{place} {kind}",
                    "adapted": right["label"],
                    "frozen": right["source_label"],
                    "adapter": right["adapter"],
                    "same_as_adapter": share_equal(predicted["label"], predicted["adapter"]),
                    "outcomes": Counter(answer["outcome"] for answer in answers),
                    "drift": answers[-1]["drift"]["score"],
                }
            )
    return {"images": options.images, "phases": phases}


def share_equal(some: list[str], others: list[str]) -> float:
    return sum(one == other for one, other in zip(some, others, strict=True)) / len(some)


class Others:
    """How many cores other processes than this one and those of the service kept busy inside the `with` block."""

    def __init__(self, process: int):
        self._ours = (os.getpid(), *family(process))

    def __enter__(self) -> Others:
        self._began, self._before = time.perf_counter(), self._others()
        return self

    def __exit__(self, *error: object) -> None:
        self.cores = max(0.0, (self._others() - self._before) / (time.perf_counter() - self._began))

    def _others(self) -> float:
        every = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
        ours = [Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split() for process in self._ours]
        idle = every[3] + every[4]
        return (sum(every[:8]) - idle - sum(int(words[11]) + int(words[12]) for words in ours)) / TICKS


@contextmanager
def served(*words: str) -> Iterator[tuple[int, int]]:
    """A service as a process: its port and its number."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        command = [sys.executable, "-m", "ncttt", "serve", "--model", MODEL, "--port", "0", "--threads", "1"]
        with log.open("w") as errors:
            process = subprocess.Popen([*command, "--state", f"{folder}/states", *words], stderr=errors)
        while not (found := re.search(r"http://127.0.0.1:(\d+)", log.read_text())):
            if process.poll() is not None:
                raise SystemExit(log.read_text())
            time.sleep(0.05)
        try:
            yield int(found[1]), process.pid
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def batches_of(load: Load) -> list[list[int]]:
    """The numbers of the requests of each batch, in the order of the batches: each made a version of the stream."""
    batches: dict[int, list[int]] = {}
    for answer in sorted(load.answers, key=lambda answer: answer["version"]):
        batches.setdefault(answer["version"], []).append(answer["request"])
    return list(batches.values())


def adapter() -> ncttt.Adapter:
    """An adapter like that of the service."""
    model = ncttt.load(MODEL)
    settings: dict[str, Any] = {"protocol": "online", "stop": "source", "on_collapse": "reset", "steps": 2, "lr": 1e-3}
    return ncttt.Adapter(model, dataclasses.replace(model.method, gather=64), **settings)


def adapter_rate(alone: ncttt.Adapter, tensor: torch.Tensor, batches: list[list[int]]) -> float:
    """Images per second of an adapter that is called with these batches."""
    inputs = [tensor[batch] for batch in batches]
    began = time.perf_counter()
    for batch in inputs:
        alone(batch)
    return sum(map(len, batches)) / (time.perf_counter() - began)


def tensor_of(images: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(images.copy()).permute(0, 3, 1, 2).float().div(255)


def test_images(kind: str, count: int) -> np.ndarray:
    shift = {} if kind == "clean" else {"corruption": kind, "severity": 5}
    return np.asarray(ncttt.data.load("cifar10", "test", **shift).images[:count])


def test_labels(count: int) -> list[str]:
    data = ncttt.data.load("cifar10", "test")
    assert data.labels is not None
    return [test_classes()[label] for label in data.labels[:count].tolist()]


@cache
def test_classes() -> tuple[str, ...]:
    return tuple(ncttt.data.load("cifar10", "test").classes)


def memory_of(process: int) -> float:
    """Memory of the processes of a service, in MiB; pages that they share count once (PSS)."""
    texts = [Path(f"/proc/{each}/smaps_rollup").read_text() for each in family(process)]
    return sum(int(re.findall(r"^Pss:\s+(\d+) kB", text, re.MULTILINE)[0]) for text in texts) / 1024


def family(process: int) -> list[int]:
    """A process and those that it has started."""
    words = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return [process, *map(int, words)]


def quantiles(values: list[float]) -> dict[str, float]:
    ordered = sorted(values)
    return {name: ordered[int(share * (len(ordered) - 1))] for name, share in (("p50", 0.5), ("p99", 0.99))}


if __name__ == "__main__":
    main()
