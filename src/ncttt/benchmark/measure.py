"""One cell measured: adapt and predict batch by batch, score, and the largest memory on the way."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
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
from ncttt.adapt.small_batches import SmallBatchWarning
from ncttt.base.devices import fast_kernels
from ncttt.base.errors import InputError
from ncttt.base.provenance import origin
from ncttt.benchmark.cell import Cell
from ncttt.benchmark.scenarios import Scenario
from ncttt.benchmark.scores import calibration_error, class_accuracy, negative_log_likelihood
from ncttt.benchmark.shared_arrays import MappedImages
from ncttt.data.batching import CALIBRATED
from ncttt.data.stream import Domain, Stream
from ncttt.methods import METHODS, Source
from ncttt.methods.settings import method_from
from ncttt.model.branched import Branched
from ncttt.model.source_facts import calibrated
from ncttt.zoo.checkpoint import load
from ncttt.zoo.stored import description

_origin = lru_cache(maxsize=1)(origin)
_CLEAR, _STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")


@dataclass(frozen=True)
class Result:
    """A finished cell: the rest of its row, and in the order of the stream, for each of its step counts, the class
    predicted for every image, int64 (steps, N), and whether that was right, bool (steps, N).
    """

    columns: dict[str, Any]
    predicted: np.ndarray
    right: np.ndarray


def measure(cell: Cell, cache: Path, methods: Sequence[str] = ()) -> Result:
    """Run one cell; corrupted images are found or made in the folder `cache`.

    `methods` are the addresses of the user's own, which a checkpoint may need and must not import by itself.
    """
    for address in methods:
        METHODS.find(address)
    with _threads(cell.threads), fast_kernels(cell.fast, cell.device):
        stream, labels = _stream(cell, cache)
        model = _model(cell.folder, cell.weights, cell.device)
        options: dict[str, Any] = {"protocol": cell.protocol, "stop": cell.stop, "seed": cell.seed, "copy": False}
        model = model if cell.calibration is None else _calibrated(cell, cache)
        adapter, run = Adapter(model, method_from(cell.method), **options), _Record()
        with measuring_peak(cell.device) as memory, warnings.catch_warnings():
            warnings.simplefilter("ignore", SmallBatchWarning)  # a row says what the size of its batches is worth
            try:
                for batch in stream:
                    if batch.new_domain:
                        adapter.new_domain()
                    run.add(adapter, cell.steps, batch.images)
            finally:
                adapter.reset()  # for the next cell of this process, which gets the same model
        before = _source_predictions(cell, stream, cache)
    return _result(cell, stream, labels, run, before, memory.mib)


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


def _result(
    cell: Cell, stream: Stream, labels: np.ndarray, run: _Record, before: np.ndarray, memory: float | None
) -> Result:
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
        "accuracy_of_parts": _accuracy_of_parts(cell, stream.domain_of_images, last),
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
    return Result(columns, predicted, right)


def _stream(cell: Cell, cache: Path) -> tuple[Stream, np.ndarray]:
    """The images of a cell in its order, and their labels (N,)."""
    labels = np.asarray(cell.scenarios[0].labels(cache))
    made = {scenario: _domain(scenario, labels, cache) for scenario in dict.fromkeys(cell.scenarios)}
    domains = [made[scenario] for scenario in cell.scenarios]
    settings = {"batch_size": cell.batch_size, "seed": cell.seed, "device": cell.device}
    stream = Stream(domains=domains, order=cell.order, **settings)
    return stream, labels[stream.places]


def _domain(scenario: Scenario, labels: np.ndarray | None, cache: Path) -> Domain:
    return Domain(scenario.corruption, MappedImages(scenario.images(cache)), labels, scenario.severity)


def _source_predictions(cell: Cell, stream: Stream, cache: Path) -> np.ndarray:
    """What the same checkpoint predicts without any adaptation, in the order of the stream."""
    each = [_unadapted(cell.folder, cell.weights, cell.device, scenario, cache) for scenario in cell.scenarios]
    return np.stack(each)[stream.domain_of_images, stream.places]


@lru_cache(maxsize=128)
def _unadapted(folder: str, weights: str, device: str, scenario: Scenario, cache: Path) -> np.ndarray:
    adapter = Adapter(_model(folder, weights, device), Source(), copy=False)
    domain = _domain(scenario, None, cache)
    stream = Stream(domains=[domain], order="given", batch_size=256, even=True, device=device)
    return torch.cat([adapter(batch.images).argmax(1).cpu() for batch in stream]).numpy()


@lru_cache(maxsize=8)
def _model(folder: str, weights: str, device: str) -> Branched:
    """A checkpoint, read once a process; one that has changed since the cell was planned is refused."""
    model = load(folder)
    if description(folder)["weights_sha256"] != weights:
        raise InputError(f"the checkpoint in {folder} has changed since the grid was begun; begin again")
    return model.to(device)


def _calibrated(cell: Cell, cache: Path) -> Branched:
    """The checkpoint with the facts of the source that the cell's method needs, measured once a process."""
    assert cell.calibration is not None
    settings = json.dumps(cell.method, sort_keys=True)
    return _with_facts(cell.folder, cell.weights, cell.device, settings, cell.calibration, cache)


@lru_cache(maxsize=4)
def _with_facts(folder: str, weights: str, device: str, settings: str, source: Scenario, cache: Path) -> Branched:
    domain = _domain(source, None, cache)
    stream = Stream(domains=[domain], order="given", batch_size=CALIBRATED, even=True, device=device)
    return calibrated(_model(folder, weights, device), method_from(json.loads(settings)), stream)


def _accuracy_of_parts(cell: Cell, domains: np.ndarray, right: np.ndarray) -> str | None:
    """The accuracy under each corruption, over all its severities and visits."""
    if len(cell.corruptions) == 1:
        return None
    names = np.array([scenario.corruption for scenario in cell.scenarios])[domains]
    each = [(corruption, right[names == corruption]) for corruption in cell.corruptions]
    return json.dumps({corruption: float(part.mean()) for corruption, part in each if len(part)})


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


@contextmanager
def _threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@dataclass
class Peak:
    """MiB at most, known after the work; None where the system keeps no such figure."""

    mib: float | None = None


@contextmanager
def measuring_peak(device: str) -> Iterator[Peak]:
    """Fill in the peak when the `with` block ends."""
    peak = Peak()
    if torch.device(device).type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        yield peak
        peak.mib = round(torch.cuda.max_memory_allocated(device) / 2**20, 1)
        return
    try:
        _CLEAR.write_text("5")  # Linux: forget the largest resident size
    except OSError:
        yield peak
        return
    yield peak
    peak.mib = round(int(_STATUS.read_text().split("VmHWM:")[1].split()[0]) / 1024, 1)
