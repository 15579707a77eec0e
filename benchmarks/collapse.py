"""Whether collapse is noticed and survived, and what watching for it costs healthy streams.

    python benchmarks/collapse.py --data digits --batch 16 --out results/collapse_digits.csv
    python benchmarks/collapse.py --data cifar10 --images 128 --out results/collapse_cifar10.csv
    python benchmarks/collapse.py --data digits --methods tent,sar,ncttt --streams long --out results/collapse_long.csv

On validation images, clean and under the four extra corruptions at severity 5, one stream after another without a
reset. `healthy` is in random order at the method's own learning rate, `by_class` sorted by class, `fast` has a rate a
hundred times as large, and `long` repeats the stream in small batches until there were ten thousand. A row compares, on
the same images, the unadapted model (no steps), the method as it is, and the method with on_collapse="reset", which
survives if it ends at most two points below the first. The
thresholds in src/ncttt/adapt/collapse.py were chosen on such streams. Takes one thread, and minutes.
"""

import argparse
import itertools
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

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
LONG, LONG_BATCH = 10_000, 8
ALLOWED = 0.02  # of accuracy that a method with on_collapse="reset" may lose against no steps
OWN_MODEL = ("ncttt", "ttt", "ttt-plus", "clust3", "ttt-flow")  # methods that the zoo has a model of
ANY_MODEL = tuple(name for name, kind in METHODS.items() if kind.learns and not kind.needs_training())
# NC-TTT's online setting, and fewer views than the 32 of CoTTA and MEMO, for the time that they take.
SETTINGS = {"cotta": {"views": 4}, "memo": {"views": 4}}
STEPS = {"ncttt": 2}


def models(data: str, names: list[str]) -> Iterator[tuple[str, ncttt.Branched, ncttt.Method]]:
    """Each method with a model for it."""
    source = ncttt.load("digits-small-ncttt" if data == "digits" else "cifar10-small-source")
    normalisation = {"mean": source.mean.flatten().tolist(), "std": source.std.flatten().tolist()}
    for name in names:
        if name in OWN_MODEL:
            model = ncttt.load(f"{data}-small-{name}")
            yield name, model, model.method
            continue
        method = METHODS[name](**SETTINGS.get(name, {}))
        if method.has_branch:
            held_out = [images for images, _ in itertools.islice(ncttt.data.batches(load(data, "val"), 128), 4)]
            yield name, ncttt.calibrated(source.classifier, method, held_out, **normalisation), method
        else:
            yield name, source, method


def batches(
    sets: list[ImageSet], order: str, size: int, count: int | None
) -> Iterator[tuple[torch.Tensor, np.ndarray]]:
    """The sets one after another, once, or again and again in other orders until there were so many batches."""
    made = (
        batch
        for seed in (itertools.count() if count else [0])
        for data in sets
        for batch in ncttt.data.batches(data.subset(order_of(data.labels, order, seed)), size)
    )
    return itertools.islice(made, count)


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


def row(name: str, model: ncttt.Branched, method: ncttt.Method, kind: str, sets: list[ImageSet], size: int) -> dict:
    """A stream of a method by three adapters."""
    order, faster = STREAMS[kind]
    size, count = (LONG_BATCH, LONG) if kind == "long" else (size, None)
    steps = STEPS.get(name, method.steps)
    found: dict[str, object] = {"method": name, "stream": kind, "batch_size": size}
    wanted = {"unadapted": {"steps": 0}, "reset": {"steps": steps, "on_collapse": "reset"}, "plain": {"steps": steps}}
    for column, settings in wanted.items():
        if column == "plain" and not found["reset_collapses"]:  # then both are the same bit for bit
            figures = {"accuracy": found["reset_accuracy"], "end": found["reset_end"], "collapses": 0, "worst": 0.0}
        else:
            adapter = ncttt.Adapter(model, method, protocol="continual", lr=faster * method.lr, **settings)
            figures = measured(adapter, batches(sets, order, size, count))
        found |= {f"{column}_{key}": round(value, 4) for key, value in figures.items()}
    columns = [f"{column}_{key}" for column in ("unadapted", "plain", "reset") for key in ("accuracy", "end")]
    shown = {key: found[key] for key in ("method", "stream", "batch_size", *columns, "reset_collapses", "reset_worst")}
    return shown | {"survives": shown["reset_accuracy"] >= shown["unadapted_accuracy"] - ALLOWED}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", choices=["digits", "cifar10"], default="digits")
    parser.add_argument("--methods", help="names with commas; by default all that the data has models for")
    parser.add_argument("--streams", default="healthy,by_class,fast")
    parser.add_argument("--images", type=int, default=256, help="of each of the five sets")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    default = [*ANY_MODEL, *(["ncttt"] if options.data == "digits" else OWN_MODEL)]
    names = options.methods.split(",") if options.methods else default
    data = load(options.data, "val")
    data = data.subset(order_of(data.labels, "random", 0)[: options.images])
    sets = [data, *(corrupted(data, name, 5) for name in EXTRA)]
    rows = []
    for name, model, method in models(options.data, names):
        for kind in options.streams.split(","):
            rows.append({"data": options.data} | row(name, model, method, kind, sets, options.batch) | origin())
            print({k: v for k, v in rows[-1].items() if k not in origin()}, flush=True)
            write_csv(options.out, list(rows[0]), [list(each.values()) for each in rows])


if __name__ == "__main__":
    main()
