"""The drift score of a stream: how unlike source images its last images look to the source model.

The score is -log10 p, where p is the share of windows of source images that look at least as unlike the others: 2 is
one window in a hundred, which raises the alarm. With a calibrated `Monitor` p is that of its window. Without one it
comes from what a calibrated model knows of itself, the mean and spread of confidence and evidence on held-out source
images: the mean of the last images is compared with them by two normal tests, of which the smaller p counts twice.
"""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol

import torch
from torch import Tensor

from ncttt.model.certainty import RECENT, certainty_of
from ncttt.monitor.window import upper_tail

if TYPE_CHECKING:
    from ncttt.model.branched import Branched
    from ncttt.monitor.monitor import Monitor
    from ncttt.monitor.window import Window

ALARM = 2.0  # of the score: one window of source images in a hundred
LARGEST = 99.0
FEWEST = 16  # images from which the mean of a skewed number is normal enough for an alarm


class Drift(NamedTuple):
    """What is known of the drift of a stream: the score, whether it is an alarm, of how many images, and why."""

    score: float
    alarm: bool
    images: int
    reason: str


class Watcher(Protocol):
    """Watches one stream; `look` takes its images and the source model's logits, which some need not be given."""

    knows_logits: ClassVar[bool]

    def look(self, images: Tensor, source_logits: Tensor | None) -> tuple[Drift, Tensor]:
        """The drift with this batch, and the source model's logits."""
        ...

    def kept(self) -> dict[str, Tensor]:
        """The window, for snapshots."""
        ...

    def go_on(self, kept: dict[str, Tensor]) -> Drift | None:
        """Go on from a window of a snapshot, and tell the drift in it; None if it is another watcher's or empty."""
        ...


class MonitorWatcher:
    """A window of its own of a calibrated monitor."""

    knows_logits: ClassVar[bool] = True

    def __init__(self, monitor: Monitor):
        self._monitor = copy.copy(monitor)
        self._monitor.new_stream()

    def look(self, images: Tensor, source_logits: Tensor | None) -> tuple[Drift, Tensor]:
        reading = self._monitor(images)
        return _of_window(reading.window), reading.logits

    def kept(self) -> dict[str, Tensor]:
        return self._monitor.kept_window()

    def go_on(self, kept: dict[str, Tensor]) -> Drift | None:
        window = self._monitor.go_on(kept)
        return None if window is None else _of_window(window)


class CertaintyWatcher:
    """The certainty of the source model on the last 64 images, beside that on source images."""

    knows_logits: ClassVar[bool] = False

    def __init__(self, model: Branched):
        self._source = model.source_certainty.double().cpu()
        self._recent = torch.zeros(2, 0, dtype=torch.float64)

    def look(self, images: Tensor, source_logits: Tensor | None) -> tuple[Drift, Tensor]:
        assert source_logits is not None
        newest = certainty_of(source_logits.double().cpu())
        self._recent = torch.cat([self._recent, newest], dim=1)[:, -max(RECENT, newest.shape[1]) :]
        return self._drift(), source_logits

    def kept(self) -> dict[str, Tensor]:
        return {"certainty": self._recent}

    def go_on(self, kept: dict[str, Tensor]) -> Drift | None:
        self._recent = kept.get("certainty", self._recent)
        return self._drift() if self._recent.shape[1] else None

    def _drift(self) -> Drift:
        count = self._recent.shape[1]
        means, (level, spread) = self._recent.mean(1), self._source.T
        tails = upper_tail((level - means) / spread.clamp_min(1e-9) * count**0.5)
        score = score_of(min(1.0, 2 * tails.min().item()))
        reason = ("confidence", "evidence")[int(tails.argmin())]
        return Drift(score, score > ALARM and count >= FEWEST, count, reason)


def _of_window(window: Window) -> Drift:
    return Drift(score_of(window.p), window.alarm, window.images, window.reason)


def score_of(p: float) -> float:
    """The score of a probability, at most 99.

    >>> score_of(0.01), score_of(0.0), score_of(1.0)
    (2.0, 99.0, 0.0)
    """
    return min(LARGEST, -math.log10(p)) + 0.0 if p > 0 else LARGEST
