"""What an epoch of training measured."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Epoch:
    """Means over one epoch of training, and the figures of the held-out images after it.

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
        """One flat row of the metrics table; held-out figures are marked by `val_`."""
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
