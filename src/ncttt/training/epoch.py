"""What an epoch of training measured: in words, as a row of the metrics table, and all of them as curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ncttt.base.csv_files import write_csv


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
