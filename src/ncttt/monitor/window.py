"""The last images of a stream, tested together: are they odder than as many source images would be?

The normal scores of n source images have mean 0 and variance 1, so the mean of N others, if they are source images, has
variance 1/N + 1/n. Images are compared with those of their predicted class, so where a window is of few classes the
second term is that of the images known of them. The window's number is the probability of so large a mean; an alarm is
a number below the rate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from ncttt.monitor.calibration import AVERAGE_IMAGES, BRANCH, Calibration


@dataclass(frozen=True)
class Window:
    """What the last images of a stream say together.

    `p` is the share of windows of as many source images that look at least as odd; `alarm` is whether that is below the
    rate of false alarms. `signals` says why: how many standard errors each lies from source images, odd ones above 0;
    the branch's score, which may deviate either way, is shown but not part of `p`. `class_shares` `(classes,)` are of
    the predictions, and `class_p` the share of windows of source images whose predictions are as unlike the source's:
    it raises no alarm, because a change of the classes is no change of how images look.
    """

    images: int
    p: float
    alarm: bool
    signals: Mapping[str, float]
    class_shares: Tensor
    class_p: float

    @property
    def reason(self) -> str:
        """The signal in `p` that lies furthest on the odd side."""
        return max((name for name in self.signals if name != BRANCH), key=lambda name: self.signals[name])

    def __str__(self) -> str:
        verdict = "drift" if self.alarm else "no drift"
        order = sorted(self.signals, key=lambda name: -abs(self.signals[name]))
        why = ", ".join(f"{name} {self.signals[name]:+.1f}" for name in order)
        return f"{verdict} in {self.images} images: p = {self.p:.2g} (standard errors from source: {why})"


class SlidingWindow:
    """Keeps the normal scores and the predictions of the last images."""

    def __init__(self, calibration: Calibration, size: int, false_alarms: float):
        self.calibration, self.size, self.false_alarms = calibration, size, false_alarms
        self._scores = torch.zeros(0, len(calibration.signals) + 1, dtype=torch.float64)
        self._predicted = torch.zeros(0, dtype=torch.long)

    def add(self, each: Tensor, together: Tensor, predicted: Tensor) -> Window:
        """Take in a batch, drop what is too old, and test what is there."""
        self._scores = torch.cat([self._scores, torch.cat([each, together[:, None]], 1)])[-self.size :]
        self._predicted = torch.cat([self._predicted, predicted])[-self.size :]
        return self._tested()

    def _tested(self) -> Window:
        count, known = len(self._scores), self.calibration.class_counts
        shares = self._predicted.bincount(minlength=len(known)).double() / count
        unknown = max(1 / self.calibration.images, (shares.square() / (known + AVERAGE_IMAGES)).sum().item())
        errors = self._scores.mean(0) / (1 / count + unknown) ** 0.5
        p = upper_tail(errors[-1]).item()
        named = dict(zip(self.calibration.signals, errors.tolist(), strict=False))
        return Window(count, p, p < self.false_alarms, named, shares, class_p(shares, count, self.calibration))


def upper_tail(scores: Tensor) -> Tensor:
    """The probability that a standard normal variable is larger; precise where it is tiny.

    >>> upper_tail(torch.tensor([0.0, 12.0], dtype=torch.float64))
    tensor([5.0000e-01, 1.7765e-33], dtype=torch.float64)
    """
    return torch.erfc(scores / 2**0.5) / 2


def class_p(shares: Tensor, count: int, calibration: Calibration) -> float:
    """Pearson's test of predicted classes against those of source images, none of which counts as impossible."""
    known = calibration.class_counts + 0.5
    expected = known / known.sum()
    distance = ((shares - expected).square() / expected).sum() / (1 / count + 1 / calibration.images)
    return torch.special.gammaincc(torch.tensor((len(known) - 1) / 2).double(), distance.double() / 2).item()
