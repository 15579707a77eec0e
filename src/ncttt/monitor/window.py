"""The last images of a stream, tested together: are they odder than as many source images would be?

The normal scores of n source images have mean 0 and variance 1, so the mean of N others, if they are source images, has
variance 1/N + 1/n. Images are compared with those of their predicted class, so where a window is of few classes the
second term is that of the images known of them. Two tests, of which the smaller probability counts twice (Bonferroni):
is the mean of all signals together too large (the images are odder), and are the means of confidence, evidence and
every layer, taken as one vector, too far from 0 in any direction (the images are others)?
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from ncttt.monitor.calibration import AVERAGE_IMAGES, BRANCH, Calibration, Scores

# Below so many images the means of a vector are not normal enough for the second test.
FEWEST = 10


@dataclass(frozen=True)
class Window:
    """What the last images of a stream say together.

    `p` is the share of windows of as many source images that look at least as unlike the source; `alarm` is whether
    that is below the rate of false alarms. It is made of `odd_p`, for images that are odder than source images, and of
    `other_p`, for images that differ in any direction. `signals` and `layers` say why: how many standard errors each
    lies from source images, odd ones above 0; the branch's score is shown but not part of `p`. `class_shares`
    `(classes,)` are of the predictions, and `class_p` the share of windows of source images whose predictions are as
    unlike the source's: it raises no alarm, because a change of the classes is no change of how images look.
    """

    images: int
    p: float
    alarm: bool
    odd_p: float
    other_p: float
    signals: Mapping[str, float]
    layers: Mapping[str, float]
    class_shares: Tensor
    class_p: float

    @property
    def reason(self) -> str:
        """The signal or layer that lies furthest from source images; on the odd side if that is what was found."""
        errors = {**self.signals, **self.layers} if self.other_p < self.odd_p else self.signals
        found = {name: error for name, error in errors.items() if name != BRANCH}
        return max(found, key=lambda name: abs(found[name]) if self.other_p < self.odd_p else found[name])

    def __str__(self) -> str:
        verdict = "drift" if self.alarm else "no drift"
        shown = {**self.signals, self.reason: {**self.layers, **self.signals}[self.reason]}
        order = sorted(shown, key=lambda name: -abs(shown[name]))
        why = ", ".join(f"{name} {shown[name]:+.1f}" for name in order)
        return f"{verdict} in {self.images} images: p = {self.p:.2g} (standard errors from source: {why})"


class SlidingWindow:
    """Keeps the normal scores and the predictions of the last images."""

    def __init__(self, calibration: Calibration, size: int, false_alarms: float):
        self.calibration, self.size, self.false_alarms = calibration, size, false_alarms
        self._scores: Scores | None = None
        self._predicted = torch.zeros(0, dtype=torch.long)

    def add(self, scores: Scores, predicted: Tensor) -> Window:
        """Take in a batch, drop what is too old, and test what is there."""
        pairs = zip(self._scores or [score[:0] for score in scores], scores, strict=True)
        self._scores = Scores(*(torch.cat(pair)[-self.size :] for pair in pairs))
        self._predicted = torch.cat([self._predicted, predicted])[-self.size :]
        return self._tested(self._scores)

    def kept(self) -> dict[str, Tensor]:
        """The images in the window, for `go_on`; none before the first."""
        if self._scores is None:
            return {}
        return {**self._scores._asdict(), "predicted": self._predicted, "centres": self.calibration.centres}

    def go_on(self, kept: Mapping[str, Tensor]) -> Window | None:
        """Take the images that another window kept, and test them; None if it had none, or another calibration."""
        if not kept.keys() >= {*Scores._fields, "predicted", "centres"}:
            return None
        if not torch.equal(kept["centres"], self.calibration.centres.cpu()):
            return None
        self._scores = Scores(*(kept[name] for name in Scores._fields))
        self._predicted = kept["predicted"]
        return self._tested(self._scores)

    def _tested(self, scores: Scores) -> Window:
        calibration, count = self.calibration, len(self._predicted)
        shares = self._predicted.bincount(minlength=len(calibration.class_counts)).double() / count
        classes = (shares.square() / (calibration.class_counts + AVERAGE_IMAGES)).sum().item()
        error = (1 / count + max(1 / calibration.images, classes)) ** 0.5
        each, odd, parts, _ = (score.mean(0) / error for score in scores)
        odd_p, other_p = upper_tail(odd).item(), 1.0
        if count >= FEWEST:
            other_p = chi_square_tail(parts @ calibration.precision @ parts, len(parts))
        p = min(1.0, 2 * min(odd_p, other_p)) if count >= FEWEST else odd_p
        signals = dict(zip(calibration.signals, each.tolist(), strict=True))
        layers = dict(zip(calibration.layers, parts[2:].tolist(), strict=True))
        unlike = class_p(shares, count, calibration)
        return Window(count, p, p < self.false_alarms, odd_p, other_p, signals, layers, shares, unlike)


def upper_tail(scores: Tensor) -> Tensor:
    """The probability that a standard normal variable is larger; precise where it is tiny.

    >>> upper_tail(torch.tensor([0.0, 12.0], dtype=torch.float64))
    tensor([5.0000e-01, 1.7765e-33], dtype=torch.float64)
    """
    return torch.erfc(scores / 2**0.5) / 2


def chi_square_tail(value: Tensor, degrees: int) -> float:
    """The probability that a chi-square variable is larger.

    >>> round(chi_square_tail(torch.tensor(3.841), 1), 3)
    0.05
    """
    return torch.special.gammaincc(torch.tensor(degrees / 2).double(), value.double() / 2).item()


def class_p(shares: Tensor, count: int, calibration: Calibration) -> float:
    """Pearson's test of predicted classes against those of source images, none of which counts as impossible."""
    known = calibration.class_counts + 0.5
    expected = known / known.sum()
    distance = ((shares - expected).square() / expected).sum() / (1 / count + 1 / calibration.images)
    return chi_square_tail(distance, len(known) - 1)
