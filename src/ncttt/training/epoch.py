"""The metrics of an epoch: of the steps, and of held-out images, which tell the health of the branch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional as F

from ncttt.base.csv_files import write_csv
from ncttt.base.seeding import seeded
from ncttt.model.branched import Branched
from ncttt.model.modes import evaluating
from ncttt.training.given import Given, given_batches


@dataclass(frozen=True)
class Epoch:
    """Means over one epoch of training, and the metrics of the held-out images after it.

    `images_per_second` is that of the training alone; `seconds` are those of training and evaluation.
    """

    number: int
    cross_entropy: float
    auxiliary: float
    accuracy: float
    lr: float = 0.0
    images_per_second: float = 0.0
    seconds: float = 0.0
    held_out: dict[str, float] = field(default_factory=dict)

    def row(self) -> dict[str, Any]:
        """One flat row of the metrics table; held-out metrics are marked by `val_`."""
        values = {
            "epoch": self.number,
            "lr": self.lr,
            "cross_entropy": self.cross_entropy,
            "auxiliary": self.auxiliary,
            "accuracy": self.accuracy,
            "images_per_second": round(self.images_per_second, 1),
            "seconds": round(self.seconds, 1),
        }
        return values | {f"val_{name}": value for name, value in self.held_out.items()}

    def summary(self) -> str:
        """Losses and accuracies in words.

        >>> Epoch(1, 0.52, 0.61, 0.9, held_out={"accuracy": 0.88}).summary()
        'loss 0.520 + 0.610, accuracy 90.0%, held out 88.0%'
        """
        text = f"loss {self.cross_entropy:.3f} + {self.auxiliary:.3f}, accuracy {self.accuracy:.1%}"
        return text + (f", held out {self.held_out['accuracy']:.1%}" if self.held_out else "")


def write_metrics(history: Sequence[Epoch], path: Path) -> None:
    """Write the metrics table as CSV, a line an epoch."""
    rows = [epoch.row() for epoch in history]
    texts = [[f"{value:.6g}" if isinstance(value, float) else value for value in row.values()] for row in rows]
    write_csv(path, list(rows[0]), texts)


def draw_curves(history: Sequence[Epoch], path: Path) -> None:
    """Draw losses and accuracy over the epochs, training and held out, to an SVG or PNG file."""
    from matplotlib.figure import Figure  # takes a second, at the end of a training alone

    figure = Figure(figsize=(9, 3), layout="constrained")
    epochs = [epoch.number for epoch in history]
    for axes, name in zip(figure.subplots(1, 3), ("cross_entropy", "auxiliary", "accuracy"), strict=True):
        axes.plot(epochs, [getattr(epoch, name) for epoch in history], label="training")
        if all(name in epoch.held_out for epoch in history):
            axes.plot(epochs, [epoch.held_out[name] for epoch in history], label="held out")
        axes.set(title=name.replace("_", "-"), xlabel="epoch")
        axes.grid(alpha=0.3)
        axes.legend()
    figure.savefig(path)


@torch.no_grad()
def held_out_metrics(
    model: Branched, data: Given, batch_size: int, seed: int = 0, workers: int = 0
) -> dict[str, float]:
    """Accuracy, cross-entropy, auxiliary loss and the health of the method's branch, as means over the images.

    The noise is seeded, so that two epochs, or two trainings, are compared on the same draws. `workers` threads read
    images ahead.
    """
    device, sums, count = model.mean.device, defaultdict(float), 0
    with evaluating(model), seeded(seed, device):
        for images, labels in given_batches(data, batch_size, workers=workers, device=device):
            count += len(images)
            logits, features = model.forward_with_features(images)
            metrics = {
                "accuracy": (logits.argmax(1) == labels).float().mean(),
                "cross_entropy": F.cross_entropy(logits, labels),
                "auxiliary": model.method.training_loss(model, images, features, logits),
                **model.method.health(model, images, features, logits),
            }
            for name, value in metrics.items():
                if value is not None:
                    sums[name] += float(value) * len(images)
    return {name: total / count for name, total in sums.items()}
