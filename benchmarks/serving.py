"""What serving costs and keeps, on loopback: throughput, latency, memory, many streams, a drifting stream.

    python benchmarks/serving.py [throughput] [streams] [drift] [--seconds 20] [--requests 100000] [--out FILE]

The service is a process of its own; this one sends requests that were encoded beforehand, one image each, over as many
connections as there are clients, so that it costs little itself. `throughput` compares images per second with those of
an `Adapter` that is called with batches of the very sizes that the service formed, and latency with the waiting and
model times in the answers; memory is read all along. `streams` sends an image of each of a thousand streams, twice.
`drift` sends CIFAR-10 test images one by one: clean, noise, blur, clean. All is bounded by `--seconds` and
`--requests`.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import io
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
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

import ncttt
from ncttt.base.provenance import origin

MODEL = "cifar10-small-ncttt"
PHASES = ("clean", "gaussian_noise", "defocus_blur", "clean")
HEAD = "POST /predict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: "


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=["throughput", "streams", "drift"])
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--images", type=int, default=500, help="of each phase of the drifting stream")
    parser.add_argument("--kind", default="gaussian_noise", help="corruption of the images of throughput, or clean")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    parts: dict[str, Callable[[Any], dict[str, Any]]] = {"throughput": throughput, "streams": streams, "drift": drift}
    found = {"origin": origin(), **{name: parts[name](options) for name in options.parts}}
    text = json.dumps(found, indent=2)
    print(text)
    if options.out:
        options.out.write_text(text + "\n")


def throughput(options: Any) -> dict[str, Any]:
    """Images per second of many clients of one stream, beside those of an adapter with batches of the same sizes."""
    images = test_images(options.kind, 512)
    requests = [encoded(image, "camera") for image in images]
    with served("--steps", "2", "--lr", "1e-3") as (port, process):
        asyncio.run(send(port, requests, options.clients, seconds=3))  # warm
        memory: list[float] = []
        answers, took = asyncio.run(
            send(
                port, requests, options.clients, options.seconds, options.requests, lambda: memory.append(rss(process))
            )
        )
    sizes = Counter(answer["batch"]["images"] for answer in answers)
    batches = [size for size, count in sizes.items() for _ in range(max(1, round(count / size)))]
    np.random.default_rng(0).shuffle(batches)
    alone = adapter_rate(images, batches, min(20.0, options.seconds))
    waits, model, total = (
        [answer["milliseconds"][name] for answer in answers] for name in ("waiting", "model", "total")
    )
    expected = [wait + each for wait, each in zip(waits, model, strict=True)]
    return {
        "requests": len(answers),
        "images_per_second": len(answers) / took,
        "adapter_images_per_second": alone,
        "ratio": len(answers) / took / alone,
        "mean_batch": statistics.mean(batches),
        "outcomes": Counter(answer["outcome"] for answer in answers),
        "latency_ms": quantiles([answer["client_ms"] for answer in answers]),
        "inside_ms": quantiles(total),
        "wait_plus_model_ms": quantiles(expected),
        "memory_mib": memory[:: max(1, len(memory) // 10)],
    }


def streams(options: Any) -> dict[str, Any]:
    """A thousand streams with 32 in memory: memory and time of the first and of the second image of each."""
    images = test_images("gaussian_noise", 1000)
    requests = [encoded(image, f"s{number}") for number, image in enumerate(images)]
    with served("--wait-ms", "0", "--hot-streams", "32") as (port, process):
        found: dict[str, Any] = {"memory_before_mib": rss(process)}
        for turn in ("first", "second"):
            answers, took = asyncio.run(send(port, requests, 8, 600, len(requests)))
            found |= {f"{turn}_ms_per_request": 1000 * took / len(answers), f"{turn}_memory_mib": rss(process)}
        found["versions"] = Counter(str(answer["version"]) for answer in answers)
    return found


def drift(options: Any) -> dict[str, Any]:
    """Accuracy of the adapted and of the frozen answers in each phase of a drifting stream, one image a request."""
    found = []
    with served("--steps", "2", "--lr", "1e-3", "--wait-ms", "0") as (port, _):
        for place, kind in enumerate(PHASES):
            labels = test_labels(options.images)
            requests = [encoded(image, "camera") for image in test_images(kind, options.images)]
            answers, _ = asyncio.run(send(port, requests, 1, 3600, len(requests)))
            rows = [answer["predictions"][0] for answer in answers]
            right = {
                name: sum(row[key] == label for row, label in zip(rows, labels, strict=True)) / len(rows)
                for name, key in (("adapted", "label"), ("frozen", "source_label"))
            }
            scores = [answer["drift"]["score"] for answer in answers]
            outcomes = Counter(answer["outcome"] for answer in answers)
            found.append({"phase": f"{place + 1} {kind}", **right, "outcomes": outcomes, "drift": scores[-1]})
    return {"images": options.images, "phases": found}


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


async def send(
    port: int,
    requests: list[bytes],
    clients: int,
    seconds: float,
    most: int = 2**62,
    each_second: Callable[[], Any] = lambda: None,
) -> tuple[list[dict[str, Any]], float]:
    """Answers, in the order of the requests for one client, of clients that each wait for an answer before they ask."""
    queue, answers, began = cycle(requests), [], time.perf_counter()
    sent = 0

    async def client() -> None:
        nonlocal sent
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while sent < most and time.perf_counter() - began < seconds:
            sent += 1
            asked = time.perf_counter()
            writer.write(next(queue))
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head.lower())
            assert length is not None
            body = await reader.readexactly(int(length[1]))
            if not head.startswith(b"HTTP/1.1 200"):
                raise SystemExit(body.decode())
            answers.append((time.perf_counter() - asked, body))  # read later: this process shares the machine
        writer.close()

    async def watch() -> None:
        while True:
            each_second()
            await asyncio.sleep(1)

    watching = asyncio.create_task(watch())
    await asyncio.gather(*(client() for _ in range(clients)))
    took = time.perf_counter() - began
    watching.cancel()
    return [{**json.loads(body), "client_ms": 1000 * wait} for wait, body in answers], took


def adapter_rate(images: np.ndarray, sizes: list[int], seconds: float) -> float:
    """Images per second of an adapter like that of the service, called with batches of these sizes, for a while."""
    torch.set_num_threads(1)
    model = ncttt.load(MODEL)
    method = dataclasses.replace(model.method, gather=64)
    settings = {"protocol": "online", "stop": "source", "on_collapse": "reset", "steps": 2, "lr": 1e-3}
    adapter = ncttt.Adapter(model, method, **settings)
    tensor = torch.from_numpy(images).permute(0, 3, 1, 2).float().div(255)
    done, place, began = 0, 0, time.perf_counter()
    for size in cycle(sizes):
        if time.perf_counter() - began > seconds:
            break
        place = place if place + size <= len(tensor) else 0
        adapter(tensor[place : place + size])
        place, done = place + size, done + size
    return done / (time.perf_counter() - began)


def test_images(kind: str, count: int) -> np.ndarray:
    shift = {} if kind == "clean" else {"corruption": kind, "severity": 5}
    return np.asarray(ncttt.data.load("cifar10", "test", **shift).images[:count])


def test_labels(count: int) -> list[str]:
    data = ncttt.data.load("cifar10", "test")
    assert data.labels is not None
    return [data.classes[label] for label in data.labels[:count].tolist()]


def encoded(image: np.ndarray, stream: str) -> bytes:
    """A whole request, ready to be sent."""
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "PNG")
    field = f'--b\r\nContent-Disposition: form-data; name="stream"\r\n\r\n{stream}\r\n'.encode()
    file = b'--b\r\nContent-Disposition: form-data; name="image"; filename="a.png"\r\n\r\n' + buffer.getvalue()
    body = field + file + b"\r\n--b--\r\n"
    return f"{HEAD}{len(body)}\r\n\r\n".encode() + body


def rss(process: int) -> float:
    """Memory of a process, in MiB."""
    text = Path(f"/proc/{process}/statm").read_text()
    return int(text.split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def quantiles(values: list[float]) -> dict[str, float]:
    ordered = sorted(values)
    return {name: ordered[int(share * (len(ordered) - 1))] for name, share in (("p50", 0.5), ("p99", 0.99))}


if __name__ == "__main__":
    main()
