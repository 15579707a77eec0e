"""What a history consists of: points, events and thumbnails, and how each is told as JSON values."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ncttt.serve.dashboard.thumbnails import as_png


@dataclass(slots=True)
class Point:
    """A batch or several: sums over their images, and what the last one left behind."""

    number: int
    began: float  # a clock that never jumps
    time: float
    images: int = 0
    total: int = 0
    changed: int = 0
    steps: int = 0
    classes: Counter[int] = field(default_factory=Counter)
    drift: float | None = None
    alarm: bool = False
    outcome: str = ""
    version: int = 0
    labels: int = 0
    adapted: int = 0
    source: int = 0


@dataclass(frozen=True, slots=True)
class Event:
    """What happened to a stream, in a word and in a sentence, after `total` images."""

    number: int
    time: float
    total: int
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Shown:
    """A thumbnail with the classes that both models predicted, and the true one where it is known."""

    number: int
    image: np.ndarray
    adapted: tuple[int, float]
    source: tuple[int, float]
    truth: int | None


def of_point(point: Point) -> dict[str, Any]:
    """A point as JSON values; classes that were not predicted are left out."""
    names = ("number", "time", "images", "total", "changed", "steps", "drift", "alarm", "outcome", "version")
    told = {name: getattr(point, name) for name in (*names, "labels", "adapted", "source")}
    return told | {"classes": {str(index): count for index, count in point.classes.items()}}


def of_shown(shown: Shown, classes: tuple[str, ...]) -> dict[str, Any]:
    """A thumbnail as JSON values, with names for classes."""
    return {
        "number": shown.number,
        "image": as_png(shown.image),
        "label": classes[shown.adapted[0]],
        "probability": shown.adapted[1],
        "source_label": classes[shown.source[0]],
        "source_probability": shown.source[1],
        "truth": None if shown.truth is None else classes[shown.truth],
    }
