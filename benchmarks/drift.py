"""Which signal tells drift? AUROC per image, detection delay and false alarms of the monitor, its parts and its peers.

    python benchmarks/drift.py --cifar10 cifar10-small-ncttt --skip 4000 --out results/drift_cifar10.csv
    ncttt train --data pacs --image-size 32 --network small --network-settings '{width: 24, growth: [1, 2, 4, 8]}' \\
        --start cifar10-small-ncttt --recipe.epochs 4 --recipe.lr 0.02 --recipe.warmup 0.2 \\
        --recipe.augment pad_crop_flip --threads 1 --out runs/pacs
    python benchmarks/drift.py --pacs runs/pacs/last --out results/drift_pacs.csv

The monitor is calibrated on the held-out part of the training images (`val`). AUROC tells shifted test images from the
same images without the shift. A stream begins with a window of other clean test images, then come shifted ones; every
detector looks after each `STRIDE` images, and the delay is the number of shifted images at its first alarm, at most
`LONGEST`. False alarms are the share of windows of clean images, mixed and sorted by class. Detectors: the monitor, its
signals alone by the same test, within the predicted class as in the monitor (of the branch either way, or low scores as
odd), `Adapter.shift` with the method's statistics (batches of 125), and Kolmogorov-Smirnov tests of alibi-detect on
softmax outputs and on the input of the last layer, where that is installed.
"""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from scipy.stats import rankdata
from torch import Tensor

import ncttt
from ncttt.base.csv_files import write_csv
from ncttt.base.provenance import origin
from ncttt.data import ImageSet, batches, corrupted, load
from ncttt.data.corruptions import CORRUPTIONS
from ncttt.model.features import _LastLinear
from ncttt.monitor.calibration import BRANCH, Calibration, Scores, calibration_of, normal_score
from ncttt.monitor.looking import look_at
from ncttt.monitor.window import SlidingWindow, upper_tail

WINDOW, RATE, STRIDE, LONGEST, STREAMS, DRAWS = 128, 0.01, 8, 512, 5, 200
MONITOR, SHIFT, BRANCH_LOW, KS_SOFTMAX, KS_FEATURES = (
    "monitor",
    "shift",
    "low branch score",
    "KS softmax",
    "KS features",
)


@dataclass(frozen=True)
class Seen:
    """What the detectors know of images: normal scores, predictions, scores of the branch, softmax and features."""

    each: Tensor
    odd: Tensor
    parts: Tensor
    unlike: Tensor
    predicted: Tensor
    shift: Tensor
    softmax: np.ndarray
    features: np.ndarray

    def __getitem__(self, places: np.ndarray) -> "Seen":
        return Seen(*(part[places] for part in vars(self).values()))

    def then(self, other: "Seen") -> "Seen":
        join = {Tensor: torch.cat, np.ndarray: np.concatenate}
        return Seen(*(join[type(a)]([a, b]) for a, b in zip(vars(self).values(), vars(other).values(), strict=True)))


@torch.no_grad()
def raw(model: ncttt.Branched, data: ImageSet) -> list[tuple]:
    """Looks, shift scores under the method's statistics, and features of a set, batch by batch."""
    adapter = ncttt.Adapter(model)
    parts = []
    for images, _ in batches(data, 125):
        with _LastLinear(model.classifier) as last:
            look = look_at(model, images)
        parts.append((look, adapter.shift(images), last.input_for(look.logits)))
    return parts


def seen(parts: list[tuple], calibration: Calibration, source_shift: Tensor) -> Seen:
    scores = [calibration.scores(look) for look, _, _ in parts]
    logits = torch.cat([look.logits for look, _, _ in parts])
    shift = normal_score(-torch.cat([part[1] for part in parts]).double(), source_shift)
    features = torch.cat([part[2] for part in parts]).numpy()
    joined = [torch.cat(parts) for parts in zip(*scores, strict=True)]
    return Seen(*joined, logits.argmax(1), shift, logits.softmax(1).numpy(), features)


def oddness(images: Seen, signals: tuple[str, ...]) -> dict[str, np.ndarray]:
    """A number for each image and detector, large for odd ones; the branch alone is odd either way."""
    found = {name: column.numpy() for name, column in zip(signals, images.each.T, strict=True)}
    inverted = -found.pop(BRANCH)
    branch = {"branch, two-sided": np.abs(inverted), BRANCH_LOW: inverted, SHIFT: images.shift.numpy()}
    return found | branch | {"odder alone": images.odd.numpy(), MONITOR: images.unlike.numpy()}


def auroc(odd: np.ndarray, clean: np.ndarray) -> float:
    ranks = rankdata(np.concatenate([odd, clean]))[: len(odd)]
    return float((ranks.sum() - len(odd) * (len(odd) + 1) / 2) / len(odd) / len(clean))


def looks(stream: Seen, calibration: Calibration, peers: dict[str, Callable], names: list[str] | None = None):
    """The p-values of every detector after each STRIDE images of a stream, once a window is full."""
    window, sums = SlidingWindow(calibration, WINDOW, RATE), {}
    for start in range(0, len(stream.odd), STRIDE):
        part = stream[np.arange(start, min(start + STRIDE, len(stream.odd)))]
        tested = window.add(Scores(part.each, part.odd, part.parts, part.unlike), part.predicted)
        if tested.images < WINDOW:
            continue
        last = stream[np.arange(start + len(part.odd) - WINDOW, start + len(part.odd))]
        found = {name: upper_tail(torch.tensor(z)).item() for name, z in tested.signals.items() if name != BRANCH}
        branch = torch.tensor(tested.signals[BRANCH])
        found |= {"branch, two-sided": 2 * upper_tail(branch.abs()).item(), BRANCH_LOW: upper_tail(-branch).item()}
        error = (1 / WINDOW + 1 / calibration.images) ** 0.5
        found |= {SHIFT: upper_tail(last.shift.mean() / error).item(), MONITOR: tested.p}
        found |= {"odder alone": tested.odd_p, "other alone": tested.other_p}
        found |= {name: test(last) for name, test in peers.items() if not sums.get(name)}
        sums |= {name: p < RATE for name, p in found.items() if p < RATE}
        yield found


def delays(before: Seen, after: Seen, calibration: Calibration, peers: dict[str, Callable]) -> dict[str, float]:
    """Mean number of shifted images at the first alarm of each detector."""
    found: dict[str, list[int]] = {}
    for seed in range(STREAMS):
        draw = np.random.default_rng(seed)
        clean = before[draw.permutation(len(before.odd))[: WINDOW - STRIDE]]
        shifted = after[draw.permutation(len(after.odd))[:LONGEST]]
        first: dict[str, int] = {}
        for number, ps in enumerate(looks(clean.then(shifted), calibration, peers), 1):
            first |= {name: number * STRIDE for name, p in ps.items() if p < RATE and name not in first}
            if len(first) == len(ps.keys() | first.keys()):
                break
        for name in ps.keys() | first.keys():
            found.setdefault(name, []).append(first.get(name, LONGEST))
    return {name: float(np.mean(values)) for name, values in found.items()}


def false_alarms(
    clean: Seen, order: np.ndarray, calibration: Calibration, peers: dict[str, Callable]
) -> dict[str, float]:
    """Share of windows that alarm, of those that do not overlap."""
    starts = range(0, len(order) - WINDOW + 1, WINDOW)
    windows = [next(iter(looks(clean[order[start : start + WINDOW]], calibration, peers))) for start in starts]
    return {name: float(np.mean([ps[name] < RATE for ps in windows])) for name in windows[0]}


def alibi(reference: Seen) -> dict[str, Callable[[Seen], float]]:
    """Kolmogorov-Smirnov tests of alibi-detect, with its own correction over columns; nothing where it is missing."""
    try:
        from alibi_detect.cd import KSDrift
    except ImportError:
        return {}
    some = reference[np.random.default_rng(0).permutation(len(reference.odd))[:1000]]
    softmax, features = KSDrift(some.softmax, p_val=RATE), KSDrift(some.features, p_val=RATE)

    def test(detector, images: np.ndarray) -> float:
        data = detector.predict(images)["data"]
        return 0.0 if data["is_drift"] else 1.0

    return {
        KS_SOFTMAX: lambda window: test(softmax, window.softmax),
        KS_FEATURES: lambda window: test(features, window.features),
    }


def shifts_of(data: ImageSet) -> Iterator[tuple[str, int, ImageSet]]:
    for severity in (1, 5):
        for name in CORRUPTIONS:
            yield name, severity, corrupted(data, name, severity)


def measure(
    model: ncttt.Branched, source: ImageSet, fresh: ImageSet, clean: ImageSet, shifts
) -> list[dict[str, object]]:
    """Rows of every shift and detector, and those of clean streams."""
    parts = raw(model, source)
    calibration = calibration_of([look for look, _, _ in parts])
    source_shift = (-torch.cat([part[1] for part in parts]).double()).sort().values
    known, other, base = (seen(p, calibration, source_shift) for p in (parts, raw(model, fresh), raw(model, clean)))
    peers, signals, rows = alibi(known), calibration.signals, []
    mixed = [
        false_alarms(other, np.random.default_rng(seed).permutation(len(fresh)), calibration, peers)
        for seed in range(10)
    ]
    ordered = false_alarms(other, np.argsort(fresh.labels, kind="stable"), calibration, peers)
    for name in mixed[0]:
        row = {"shift": "clean", "severity": 0, "detector": name, "auroc": "", "low": "", "high": "", "delay": ""}
        rate = float(np.mean([found[name] for found in mixed]))
        rows.append(row | {"false_alarms": rate, "false_alarms_by_class": ordered[name]})
    odd: dict[tuple[str, int], dict[str, np.ndarray]] = {}
    clean_odd = oddness(base, signals)
    for name, severity, data in shifts:
        images = seen(raw(model, data), calibration, source_shift)
        odd[name, severity] = oddness(images, signals)
        waited = delays(other, images, calibration, peers)
        for detector in waited:
            area = auroc(odd[name, severity][detector], clean_odd[detector]) if detector in clean_odd else ""
            row = {"shift": name, "severity": severity, "detector": detector, "auroc": area, "low": "", "high": ""}
            rows.append(row | {"delay": waited[detector], "false_alarms": "", "false_alarms_by_class": ""})
        print(name, severity, {k: round(v, 1) for k, v in waited.items()}, flush=True)
    return rows + means(rows, odd, clean_odd)


def means(rows: list[dict], odd: dict, clean: dict[str, np.ndarray]) -> list[dict[str, object]]:
    """Means over the shifts of a severity with bootstrap intervals over images, also of monitor minus a detector."""
    found = []
    for severity in sorted({severity for _, severity in odd}):
        keys = [key for key in odd if key[1] == severity]
        draws = {name: [] for name in clean}
        for seed in range(DRAWS):
            draw = np.random.default_rng(seed)
            base = draw.integers(len(next(iter(clean.values()))), size=len(next(iter(clean.values()))))
            picks = {
                k: base
                if len(odd[k][MONITOR]) == len(base)
                else draw.integers(len(odd[k][MONITOR]), size=len(odd[k][MONITOR]))
                for k in keys
            }
            for name in clean:
                draws[name].append(np.mean([auroc(odd[key][name][picks[key]], clean[name][base]) for key in keys]))
        for name in dict.fromkeys(
            row["detector"] for row in rows if row["severity"] == severity and row["shift"] != "clean"
        ):
            own = [
                row
                for row in rows
                if row["detector"] == name and row["severity"] == severity and row["shift"] != "clean"
            ]
            delay = float(np.mean([row["delay"] for row in own]))
            row = {
                "shift": "mean",
                "severity": severity,
                "detector": name,
                "auroc": "",
                "low": "",
                "high": "",
                "delay": delay,
            }
            row |= {"false_alarms": "", "false_alarms_by_class": ""}
            found.append(row | (interval([row["auroc"] for row in own], draws[name]) if name in draws else {}))
            if name in draws and name != MONITOR:
                gain = np.subtract(draws[MONITOR], draws[name])
                mean = next(r["auroc"] for r in mean_of(rows, severity, MONITOR)) - found[-1]["auroc"]
                waited = next(r["delay"] for r in mean_of(rows, severity, MONITOR)) - delay
                ends = {"low": float(np.quantile(gain, 0.025)), "high": float(np.quantile(gain, 0.975))}
                found.append(row | {"shift": "monitor minus", "auroc": mean, "delay": waited} | ends)
    return found


def mean_of(rows: list[dict], severity: int, detector: str) -> list[dict[str, float]]:
    own = [
        row for row in rows if row["detector"] == detector and row["severity"] == severity and row["shift"] != "clean"
    ]
    return [{column: float(np.mean([row[column] for row in own])) for column in ("auroc", "delay")}]


def interval(values: list[float], draws: list[float]) -> dict[str, float]:
    low, high = np.quantile(draws, (0.025, 0.975))
    return {"auroc": float(np.mean(values)), "low": float(low), "high": float(high)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    chosen = parser.add_mutually_exclusive_group(required=True)
    chosen.add_argument("--cifar10", help="checkpoint to judge under the fifteen corruptions")
    chosen.add_argument("--pacs", help="checkpoint trained on drawings, to judge on photographs")
    parser.add_argument("--root", help="where the data set lies")
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--skip", type=int, default=0, help="test images of CIFAR-10 to leave out, at most 6,000")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    model = ncttt.load(options.cifar10 or options.pacs)
    if options.cifar10:
        source, test = load("cifar10", "val", options.root), load("cifar10", "test", options.root)
        order = np.random.default_rng(0).permutation(len(test))[options.skip :]
        clean, fresh = test.subset(order[: options.images]), test.subset(order[options.images : 4 * options.images])
        rows = measure(model, source, fresh, clean, shifts_of(clean))
    else:
        size = model.input_shape[1]
        held_out = load("pacs", "val", options.root, image_size=size)
        photos = load("pacs", "test", options.root, image_size=size)
        order = np.random.default_rng(0).permutation(len(held_out))
        half = len(order) // 2
        source, clean = held_out.subset(order[:half]), held_out.subset(order[half:])
        rows = measure(model, source, clean, clean, [("photographs", 0, photos)])
    shown = {"window": WINDOW, "rate": RATE, "images": len(clean), **origin()}
    short = [{k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()} | shown for row in rows]
    write_csv(options.out, list(short[0]), [list(row.values()) for row in short])
    for row in short:
        if row["shift"] in ("mean", "monitor minus", "clean", "photographs"):
            print({k: v for k, v in row.items() if v != "" and k not in shown})


if __name__ == "__main__":
    main()
