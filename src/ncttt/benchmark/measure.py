"""One cell measured: adapt and predict batch by batch, then score. Runs in whatever process an executor chooses."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ncttt.adapt.adapter import Adapter
from ncttt.adapt.batch import Trace
from ncttt.base.errors import InputError
from ncttt.base.provenance import origin
from ncttt.benchmark import streams
from ncttt.benchmark.cell import Cell
from ncttt.benchmark.memory import measuring_peak
from ncttt.benchmark.scenes import Scene
from ncttt.benchmark.scores import calibration_error, class_accuracy, negative_log_likelihood
from ncttt.methods import Source
from ncttt.methods.settings import method_from
from ncttt.model.branched import Branched
from ncttt.zoo.checkpoint import description, load

_origin = lru_cache(maxsize=1)(origin)


@dataclass(frozen=True)
class Measured:
    """A finished cell: the rest of its row and, in the order of the stream, what was predicted after each count."""

    columns: dict[str, Any]
    predicted: np.ndarray
    right: np.ndarray


@dataclass
class Stream:
    """The images of a cell in its order, batch by batch."""

    images: list[np.ndarray]
    batches: list[tuple[np.ndarray, ...]]
    device: str

    def __iter__(self) -> Iterator[Tensor]:
        for parts, places in self.batches:
            pixels = torch.from_numpy(streams.gather(self.images, parts, places)).to(self.device)
            yield pixels.permute(0, 3, 1, 2).float().div_(255)

    @property
    def parts(self) -> np.ndarray:
        """Which scene each image comes from, (N,)."""
        return np.concatenate([parts for parts, _ in self.batches])

    @property
    def places(self) -> np.ndarray:
        """Where in its scene each image is, (N,)."""
        return np.concatenate([places for _, places in self.batches])


def measure(cell: Cell, cache: Path) -> Measured:
    """Run one cell; corrupted images are found or made in the folder `cache`."""
    with _threads(cell.threads):
        stream, labels = _stream(cell, cache)
        model = _model(cell.folder, cell.weights, cell.device)
        protocol = "continual" if cell.protocol == "mixed" else cell.protocol
        options: dict[str, Any] = {"protocol": protocol, "stop": cell.stop, "seed": cell.seed, "copy": False}
        adapter, run = Adapter(model, method_from(cell.method), **options), _Record()
        with measuring_peak(cell.device) as memory:
            try:
                for images in stream:
                    run.add(adapter, cell.steps, images)
            finally:
                adapter.reset()  # for the next cell of this process, which gets the same model
        before = _source_predictions(cell, stream, cache)
    return _measured(cell, stream, labels, run, before, memory.mib)


@dataclass
class _Record:
    """What the batches of a stream gave."""

    logits: list[Tensor] = field(default_factory=list)
    traces: list[Trace] = field(default_factory=list)
    seconds: float = 0.0

    def add(self, adapter: Adapter, steps: tuple[int, ...], images: Tensor) -> None:
        start = time.perf_counter()
        logits = adapter.predict_at(steps, images).cpu()  # which also waits for a GPU
        self.seconds += time.perf_counter() - start
        self.logits.append(logits)
        self.traces.append(adapter.trace)


def _measured(
    cell: Cell, stream: Stream, labels: np.ndarray, run: _Record, before: np.ndarray, memory: float | None
) -> Measured:
    logits = torch.cat(run.logits, dim=1)
    predicted = logits.argmax(2).numpy()
    right = predicted == labels
    last, was_right = right[-1], before == labels
    truth = torch.from_numpy(labels)
    columns = {
        "images": len(labels),
        "accuracy": float(last.mean()),
        "class_accuracy": class_accuracy(last, labels),
        "nll": negative_log_likelihood(logits[-1], truth),
        "ece": calibration_error(logits[-1], truth),
        "accuracy_at": json.dumps(dict(zip(map(str, cell.steps), right.mean(1).tolist(), strict=True))),
        "accuracy_of_parts": _accuracy_of_parts(cell, stream.parts, last),
        "shift_before": _mean(trace.shift_before for trace in run.traces),
        "shift_after": _mean(trace.shift_after for trace in run.traces),
        "broken": int((was_right & ~last).sum()),
        "mended": int((~was_right & last).sum()),
        "steps_taken": sum(trace.steps for trace in run.traces) / len(run.traces),
        "fallbacks": sum(trace.fell_back for trace in run.traces),
        "images_per_second": round(len(labels) / run.seconds, 1),
        "peak_memory_mib": memory,
        **{name: value for name, value in _origin().items() if name != "threads"},
    }
    return Measured(columns, predicted, right)


def _stream(cell: Cell, cache: Path) -> tuple[Stream, np.ndarray]:
    labels = np.asarray(cell.scenes[0].labels(cache))
    make = streams.mixed if cell.protocol == "mixed" else streams.one_by_one
    batches = make(labels, len(cell.scenes), cell.order, cell.seed, cell.batch_size)
    stream = Stream([scene.images(cache) for scene in cell.scenes], batches, cell.device)
    return stream, labels[stream.places]


def _source_predictions(cell: Cell, stream: Stream, cache: Path) -> np.ndarray:
    """What the same checkpoint predicts without any adaptation, in the order of the stream."""
    each = [_unadapted(cell.folder, cell.weights, cell.device, scene, cache) for scene in cell.scenes]
    return np.stack(each)[stream.parts, stream.places]


@lru_cache(maxsize=64)
def _unadapted(folder: str, weights: str, device: str, scene: Scene, cache: Path) -> np.ndarray:
    adapter, images = Adapter(_model(folder, weights, device), Source(), copy=False), scene.images(cache)
    places = np.arange(len(images))
    chunks = [(np.zeros(len(chunk), int), chunk) for chunk in np.array_split(places, -(-len(places) // 256))]
    return torch.cat([adapter(batch).argmax(1).cpu() for batch in Stream([images], chunks, device)]).numpy()


@lru_cache(maxsize=8)
def _model(folder: str, weights: str, device: str) -> Branched:
    """A checkpoint, read once a process; one that has changed since the cell was planned is refused."""
    model = load(folder)
    if description(folder)["weights_sha256"] != weights:
        raise InputError(f"the checkpoint in {folder} has changed since the grid was begun; begin again")
    return model.to(device)


def _accuracy_of_parts(cell: Cell, parts: np.ndarray, right: np.ndarray) -> str | None:
    if len(cell.scenes) == 1:
        return None
    shown = [(scene.corruption, right[parts == n]) for n, scene in enumerate(cell.scenes) if (parts == n).any()]
    return json.dumps({corruption: float(found.mean()) for corruption, found in shown})


def _mean(values: Any) -> float | None:
    found = [value for value in values if value is not None]
    return sum(found) / len(found) if found else None


@contextmanager
def _threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
