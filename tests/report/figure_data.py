"""What figures are drawn from, made by hand: rows, trials, arrays. No number here was measured."""

import json
import math

import numpy as np
from report_rows import row

from ncttt.benchmark.drifting import DOMAINS, DriftRecord
from ncttt.data.corruptions import CLEAN, CORRUPTIONS
from ncttt.report.figures.shared.adapted import Confidences
from ncttt.report.figures.tsne import Mapped

COUNTS = (0, 1, 2, 5, 10, 20, 50, 100)
SEEDS = (0, 1)
BATCH = {"norm": "batch"}
SPREAD = np.array([0, -0.005, 0.005])


def accuracy_at(number: int, seed: int) -> dict[str, float]:
    """A curve that rises by some points and falls again, with its highest place further on for later corruptions."""
    start, best = 0.55 + 0.02 * number, 3 + 2 * number
    return {str(n): start + 0.03 * (n / best) * math.exp(1 - n / best) + 0.002 * seed for n in COUNTS}


def rows_of_a_benchmark(corruptions=(CLEAN, *CORRUPTIONS)) -> list[dict]:
    """Source, batch statistics, TENT, and NC-TTT with and without its stop rule, on every corruption."""
    found = []
    for number, name in enumerate(corruptions):
        for seed in SEEDS:
            curve = accuracy_at(number, seed)
            batch, last = curve["0"], curve["100"]
            source = batch - 0.25 + 0.02 * (number % 7)
            score = 0.5 + 0.3 * batch + 0.02 * (number % 3)
            scored = {"shift_before": score, "shift_after": score + 0.1, "steps_taken": 100.0}
            stops = {"stop": "source", "steps_taken": 4.0 + number, "accuracy_at": json.dumps({"100": batch + 0.02})}
            found += [
                whole_row("source", name, source, seed),
                whole_row("ptbn", name, batch, seed, **BATCH),
                whole_row("tent", name, batch - 0.01, seed, **BATCH),
                whole_row("nc_ttt", name, last, seed, **BATCH, columns=scored | {"accuracy_at": json.dumps(curve)}),
                whole_row("nc_ttt that stops", name, batch + 0.02, seed, **BATCH, columns=scored | stops),
            ]
    return found


def whole_row(label: str, corruption: str, accuracy: float, seed: int, columns: dict | None = None, **settings) -> dict:
    measured = {"shift_before": None, "shift_after": None, "accuracy_at": None, "steps_taken": 0.0, "weights": "same"}
    method = {"name": label.split(" ")[0], **settings}
    own = measured | {"seed": seed, "settings": json.dumps(method)} | (columns or {})
    return row(label, corruption, accuracy, **own)


def trials() -> list[dict]:
    """A tuning over four layers and four scales, each with two learning rates."""
    return [
        {
            "settings": {"layer": f"layer{layer}", "method_settings.sigma_out": sigma, "lr": lr},
            "checkpoint": f"runs/tune/{layer}{sigma}",
            "accuracy": 0.6 + 0.03 * layer - 2 * sigma - 100 * abs(lr - 1e-4),
            "gain": dict(zip(("mean", "low", "high"), 0.004 * (layer - 2.2) - 0.1 * sigma + SPREAD, strict=True)),
        }
        for layer in (1, 2, 3, 4)
        for sigma in (0.01, 0.015, 0.025, 0.05)
        for lr in (1e-5, 1e-4)
    ]


def mapped(images: int = 60) -> tuple[Mapped, Mapped, np.ndarray, list[str]]:
    """Ten clusters before and after, their labels and the names of the classes; some predictions are wrong."""
    generator = np.random.default_rng(0)
    labels = np.arange(images) % 10
    centres = 10 * np.stack([np.cos(labels), np.sin(labels)], axis=1)
    wrong = np.where(np.arange(images) % 4 == 0, (labels + 1) % 10, labels)
    before, after = (centres + generator.normal(size=(images, 2)) * scale for scale in (3, 1))
    names = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
    return Mapped(before, wrong), Mapped(after, labels), labels, names


def confidences(images: int = 400) -> dict[str, Confidences]:
    generator = np.random.default_rng(1)
    found = {}
    for name, honesty in (("before", 0.7), ("after NC-TTT", 0.95)):
        confidence = 1 - generator.random(images) ** 2 * 0.9
        found[name] = Confidences(confidence, generator.random(images) < confidence * honesty)
    return found


def tiles(side: int = 32) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """An image, and five more for each corruption, all of one grey each."""
    greys = np.arange(5)[:, None, None, None] * 40
    corrupted = {name: np.zeros((5, side, side, 3), np.uint8) + greys + n for n, name in enumerate(CORRUPTIONS)}
    return np.full((side, side, 3), 9, np.uint8), {name: each.astype(np.uint8) for name, each in corrupted.items()}


def drift_records(batches: int = 4, images: int = 50) -> list[DriftRecord]:
    """A stream in which the frozen model loses half of its accuracy wherever images drift, and alarms sound there."""
    found = []
    for number in range(batches * len(DOMAINS)):
        domain = number // batches
        drifts = DOMAINS[domain] != CLEAN
        accuracies = (0.4, 0.7, 0.8) if drifts else (0.9, 0.88, 0.9)
        took = (2, "steps") if drifts else (0, "left to source")
        signal = (0.0 if drifts else 0.5, drifts)
        found.append(DriftRecord(domain, DOMAINS[domain], images, *accuracies, number, *signal, *took))
    return found


METHODS_OF_STREAMS = ("source", "ptbn", "tent", "eata", "rdumb", "sar", "deyo", "roid", "rotta", "nc_ttt", "ttt")


def stream_rows(order: str = "random", batch_size: int = 64, corruptions=CORRUPTIONS, domains: int = 15) -> list[dict]:
    """Eleven methods on one continual stream through all corruptions, 40 images each; the later the better."""
    found = []
    for place, name in enumerate(METHODS_OF_STREAMS):
        parts = {one: 0.4 + 0.03 * place + 0.01 * number for number, one in enumerate(corruptions)}
        accuracy = (sum(parts.values()) / len(parts)) * (0.8 + 0.03 * math.log2(batch_size))
        stream = {"protocol": "continual", "order": order, "batch_size": batch_size, "images": 40 * domains}
        told = {**stream, "accuracy_of_parts": json.dumps(parts)}
        norm = {"norm": "source"} if name == "source" else BATCH
        found.append(whole_row(name, "+".join(corruptions), accuracy, 0, columns=told, **norm))
    return found


def right_of(rows: list[dict]) -> dict[str, np.ndarray]:
    """Predictions of such rows: in every domain the same share is right, in an order of its own."""
    generator = np.random.default_rng(2)
    return {row["key"]: generator.random(row["images"]) < row["accuracy"] for row in rows}


def batch_size_rows() -> list[dict]:
    """The same methods on three kinds of streams with five batch sizes."""
    orders = {"random": 15, "dirichlet(0.1)": 15, "random+visits(2)": 30}
    return [
        row
        for order, domains in orders.items()
        for size in (1, 4, 16, 64, 128)
        for row in stream_rows(order, size, domains=domains)
    ]
