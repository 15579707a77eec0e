"""Whether collapse is noticed and survived, and what watching for it costs healthy streams.

    python benchmarks/collapse.py --data digits --batch 16 --rounds 2 --out results/collapse_digits.csv
    python benchmarks/collapse.py --data cifar10 --out results/collapse_cifar10.csv
    python benchmarks/collapse.py --data digits --streams long --no-plain --out results/collapse_long.csv

On validation images, clean and under the four extra corruptions at severity 5, one set after another, all of them
as often as --rounds says, without a reset. `healthy` is in random order at the method's own learning rate,
`by_class` sorted by class, `fast` has a rate a hundred times as large, and `long` goes on in batches of four until
there were ten thousand. A row compares, on the same images, batch statistics, the unadapted model (no steps, under
the method's own statistics), the method as it is, and the method with on_collapse="reset". It survives if its
accuracy over the last fifth of the stream, and that over the whole stream, are both at most two points below those
of the unadapted model. For most methods that model is batch statistics; ActMAD, MEMO, NOTE and RoTTA predict under
other statistics, which a reset does not replace by the batch's, and TTT-MAE's network has no BatchNorm. Rows are
kept as they come, so a run that was stopped goes on. It takes one thread, and an hour for ten thousand batches of
all methods.
"""

import argparse
import csv
import itertools
import warnings
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

import ncttt
from ncttt.base.csv_files import write_csv
from ncttt.base.provenance import origin
from ncttt.data.files.imageset import ImageSet
from ncttt.data.loading import corrupted, load
from ncttt.data.orders import order_of
from ncttt.methods import METHODS

EXTRA = ("speckle_noise", "gaussian_blur", "spatter", "saturate")
STREAMS = {
    "healthy": ("random", 1.0),
    "by_class": ("by_class", 1.0),
    "fast": ("random", 100.0),
    "long": ("random", 1.0),
}
LONG, LONG_BATCH = 10_000, 4
ALLOWED = 0.02  # of accuracy that a method with on_collapse="reset" may lose against no steps
BRANCHED = tuple(name for name, kind in METHODS.items() if kind.learns and kind.needs_training())
NAMES = tuple(name for name, kind in METHODS.items() if kind.learns and not kind.needs_training()) + BRANCHED
SETTINGS = {"memo": {"views": 4}}  # fewer than its 32, for the time that they take
STEPS = dict.fromkeys(BRANCHED, 2)  # NC-TTT's online setting


def models(data: str, names: list[str]) -> Iterator[tuple[str, ncttt.Branched, ncttt.Method]]:
    """Each method with a model for it."""
    source = ncttt.load("digits-small-ncttt" if data == "digits" else "cifar10-small-source")
    normalisation = {"mean": source.mean.flatten().tolist(), "std": source.std.flatten().tolist()}
    for name in names:
        method = METHODS[name](**SETTINGS.get(name, {}))
        if name in BRANCHED:
            model = branched(data, name, source.classifier, method, normalisation)
            yield name, model, model.method
        elif method.has_branch:
            held_out = [images for images, _ in itertools.islice(ncttt.data.batches(load(data, "val"), 128), 4)]
            yield name, ncttt.calibrated(source.classifier, method, held_out, **normalisation), method
        else:
            yield name, source, method


def branched(data: str, name: str, classifier: nn.Module, method: ncttt.Method, normalisation: dict) -> ncttt.Branched:
    """The zoo's model of a method; on digits, where it has only NC-TTT's, a branch trained on that classifier."""
    if data == "cifar10" or name == "nc_ttt":
        architecture = "vit" if name == "ttt_mae" else "small"
        return ncttt.load(f"{data}-{architecture}-{name.replace('nc_ttt', 'ncttt').replace('_', '-')}")
    fit = load(data, "fit")
    images, _ = next(iter(ncttt.data.batches(fit, 2)))
    torch.manual_seed(0)
    model = ncttt.attach(deepcopy(classifier), "layer3", method, images, **normalisation)
    ncttt.train(model, fit, branch="only", epochs=15, batch_size=64, held_out=load(data, "val"))
    return model


def batches(
    sets: list[ImageSet], order: str, size: int, rounds: int | None
) -> Iterator[tuple[torch.Tensor, np.ndarray]]:
    """The sets one after another so many times, or without end, each time in another order."""
    for seed in itertools.count() if rounds is None else range(rounds):
        for data in sets:
            yield from ncttt.data.batches(data.subset(order_of(data.labels, order, seed)), size)


def measured(adapter: ncttt.Adapter, stream: Iterator) -> dict[str, float]:
    """Accuracy over a stream and over its last fifth, how often it collapsed, the largest regret over that allowed."""
    right, collapses, worst = [], 0, 0.0
    for images, labels in stream:
        right.append((adapter(images).argmax(1) == torch.as_tensor(labels)).float())
        trace = adapter.trace
        collapses += trace.collapsed
        worst = max(worst, trace.regret / trace.allowed if trace.allowed else 0.0)
    each = torch.cat(right)
    end = each[-len(each) // 5 :].mean().item()
    return {"accuracy": each.mean().item(), "end": end, "collapses": collapses, "worst": worst}


class Streams:
    """The streams of one data set, and what models without steps gave on them."""

    def __init__(self, sets: list[ImageSet], options: argparse.Namespace):
        self._sets, self._options = sets, options
        self._still: dict[tuple, dict[str, float]] = {}

    def row(self, name: str, model: ncttt.Branched, method: ncttt.Method, kind: str) -> dict[str, object]:
        """A stream of a method: batch statistics, no steps, the method as it is, and with on_collapse="reset"."""
        lr, steps = STREAMS[kind][1] * method.lr, STEPS.get(name, method.steps)
        settings = ", ".join(f"{key}={value}" for key, value in SETTINGS.get(name, {}).items())
        found: dict[str, object] = {"method": name, "settings": settings, "stream": kind, "batch_size": self.size(kind)}
        unadapted = self._without_steps(model, method, kind)
        batch = self._without_steps(model, ncttt.PTBN(), kind) if model.batch_norms() else None
        reset = self._run(model, method, kind, steps=steps, lr=lr, on_collapse="reset")
        plain: dict[str, float] | None = None
        if not reset["collapses"]:
            plain = reset  # bit for bit
        elif not self._options.no_plain:
            plain = self._run(model, method, kind, steps=steps, lr=lr)
        for column, figures in {"batch": batch, "unadapted": unadapted, "plain": plain, "reset": reset}.items():
            found |= {f"{column}_{key}": round(figures[key], 4) if figures else None for key in ("accuracy", "end")}
        survives = all(reset[key] >= unadapted[key] - ALLOWED for key in ("accuracy", "end"))
        return found | {"collapses": reset["collapses"], "worst": round(reset["worst"], 4), "survives": survives}

    def size(self, kind: str) -> int:
        """How many images a batch has."""
        return LONG_BATCH if kind == "long" else self._options.batch

    def _without_steps(self, model: ncttt.Branched, method: ncttt.Method, kind: str) -> dict[str, float]:
        """The same for all methods that predict by a forward of one model under the same statistics."""
        key = model, kind, method.norm, method.looks_twice, type(method).predict
        if key not in self._still:
            self._still[key] = self._run(model, method, kind, steps=0)
        return self._still[key]

    def _run(self, model: ncttt.Branched, method: ncttt.Method, kind: str, **settings: Any) -> dict[str, float]:
        order, (rounds, count) = STREAMS[kind][0], (None, LONG) if kind == "long" else (self._options.rounds, None)
        stream = itertools.islice(batches(self._sets, order, self.size(kind), rounds), count)
        return measured(ncttt.Adapter(model, method, protocol="continual", **settings), stream)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", choices=["digits", "cifar10"], default="digits")
    parser.add_argument("--methods", help="names with commas; by default all that the data has models for")
    parser.add_argument("--streams", default="healthy,by_class,fast")
    parser.add_argument("--images", type=int, default=256, help="of each of the five sets")
    parser.add_argument("--rounds", type=int, default=1, help="how often the five sets come")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--no-plain", action="store_true", help="no run without the watch where the watch acted")
    parser.add_argument("--out", type=Path, required=True, help="rows that it has are not measured again")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    default = [name for name in NAMES if (options.data, name) != ("digits", "ttt_mae")]
    names = options.methods.split(",") if options.methods else default
    data = load(options.data, "val")
    data = data.subset(order_of(data.labels, "random", 0)[: options.images])
    streams = Streams([data, *(corrupted(data, name, 5) for name in EXTRA)], options)
    rows = read_csv(options.out)
    measured = {(row["method"], row["stream"]) for row in rows}
    wanted = [each for each in itertools.product(names, options.streams.split(",")) if each not in measured]
    found = models(options.data, list(dict.fromkeys(name for name, _ in wanted)))
    for name, model, method in found:
        for kind in (kind for each, kind in wanted if each == name):
            rows.append({"data": options.data} | streams.row(name, model, method, kind) | origin())
            print({k: v for k, v in rows[-1].items() if k not in origin()}, flush=True)
            write_csv(options.out, list(rows[-1]), [list(each.values()) for each in rows])


def read_csv(path: Path) -> list[dict[str, Any]]:
    """The rows of an earlier run."""
    return list(csv.DictReader(path.open(newline=""))) if path.exists() else []


if __name__ == "__main__":
    main()
