"""The demonstration: train a small network on the embedded digits, shift the test images, adapt, count."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ncttt.adapter import Adapter
from ncttt.branched import Branched, attach
from ncttt.data import ImageSet, batches, load
from ncttt.data.corruptions import corrupt
from ncttt.methods import NCTTT, PTBN, Source
from ncttt.models import small
from ncttt.randomness import seeded
from ncttt.training import Observer, train

# Digits are drawn thick and without texture: only the benchmark's strong constants shift them visibly.
SHIFTS = {"noise": ("gaussian_noise", 5), "blur": ("defocus_blur", 3), "contrast": ("contrast", 3)}
BATCH = 100


@dataclass(frozen=True)
class Row:
    """Accuracy in percent on one set of test images, and the mean shift score before adaptation."""

    images: str
    source: float
    statistics: float
    adapted: float
    score: float
    steps: float


def train_demo(epochs: int = 15, seed: int = 0, observers: Sequence[Observer] | None = None) -> Branched:
    """A small network and its branch, trained jointly on digits; the held-out part calibrates the stop rule."""
    fit, held_out = load("digits", "fit"), load("digits", "val")
    with seeded(seed):
        example = next(iter(batches(fit, 2)))[0]
        model = attach(
            small(num_classes=10, growth=(1, 2, 4, 8)), layer="layer3", method=NCTTT(moves="layer1"), example=example
        )
    train(
        model,
        fit,
        epochs=epochs,
        batch_size=64,
        auxiliary_weight=1.0,
        held_out=held_out,
        seed=seed,
        observers=observers,
    )
    return model


def evaluate_demo(model: Branched) -> list[Row]:
    """Source, batch statistics and NC-TTT, all on the same network, on clean and on shifted test images."""
    test = load("digits", "test")
    sets = {"clean": test}
    for name, (corruption, severity) in SHIFTS.items():
        images = corrupt(np.asarray(test.images), corruption, severity, constants="imagenet")
        sets[name] = replace(test, images=images)
    return [_row(model, name, images) for name, images in sets.items()]


def _row(model: Branched, name: str, data: ImageSet) -> Row:
    source, statistics = (_accuracy(Adapter(model, method), data)[0] for method in (Source(), PTBN()))
    adapted, score, steps = _accuracy(Adapter(model, stop="source"), data)
    return Row(name, source, statistics, adapted, score, steps)


def _accuracy(adapter: Adapter, data: ImageSet) -> tuple[float, float, float]:
    """Percent right, mean shift score before adapting, mean number of steps."""
    right, score, steps, count = 0, 0.0, 0, 0
    for images, labels in batches(data, BATCH):
        right += int((adapter(images).argmax(1) == labels).sum())
        score += adapter.trace.shift_before or 0.0
        steps += adapter.trace.steps
        count += 1
    return 100 * right / len(data), score / count, steps / count
