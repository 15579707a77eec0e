"""Collapse: predictions that adaptation has made worse, noticed without labels, and what an adapter does about it.

The judge is the unadapted model: the source's weights under the same statistics policy, on the same images, so that
neither drift nor a shift of the labels sets the two apart. With p its probabilities of an image, u its class and a the
class after adaptation, the regret p_u - p_a is the accuracy that the change costs where p is calibrated and adaptation
knows no more than p. A helpful adaptation does know more, so some regret is in order. How much? The true class,
drawn from p, has an expected regret of p_u - sum_k p_k^2: a model that mended every error would show that much, one
that mends half of them half of it. A stream whose regret, over a window of images, is above that by more than chance
changes predictions more than a better model would. Constants: chosen on validation images (docs/adapt.md).
"""

from __future__ import annotations

from math import log
from typing import NamedTuple

import torch
from torch import Tensor

WINDOW = 256  # images; those before fade
MENDED = 0.5  # of the unadapted model's errors, the most that adaptation is believed to mend
CHANCE = log(10)  # the bound is passed by chance in one window of ten, if that much is mended
MARGIN = 0.01  # of regret, because no model is calibrated to the point


class Verdict(NamedTuple):
    """What is known of a window: shares of its images, and whether that is collapse.

    `agreement` of both predictions; `regret`, the accuracy that the unadapted model thinks is lost, and how much of it
    is `allowed`; `class_shift`, the share of predictions by which the counts of classes differ; and the mean `entropy`
    of the adapted predictions less that of the unadapted.
    """

    agreement: float
    regret: float
    allowed: float
    class_shift: float
    entropy: float

    @property
    def collapsed(self) -> bool:
        """Whether the regret is more than a better model would show."""
        return self.regret > self.allowed


def sums_of(unadapted: Tensor, adapted: Tensor) -> Tensor:
    """Sums over the images of two sets of logits `(B, classes)`, `(6 + 2 * classes,)`, which `judged` takes.

    They are the count, agreements, regret, its mean and variance for the true classes, the rise of the entropy, and the
    counts of classes.
    """
    before, after = unadapted.float().softmax(1), adapted.float().softmax(1)
    classes = before.shape[1]
    chosen = before.argmax(1), after.argmax(1)
    lost = before.amax(1, keepdim=True) - before
    expected = (before * lost).sum(1)
    each = (
        torch.ones_like(expected),
        (chosen[0] == chosen[1]).to(expected),
        lost.gather(1, chosen[1][:, None])[:, 0],
        expected,
        (before * lost.square()).sum(1) - expected.square(),
        torch.special.entr(after).sum(1) - torch.special.entr(before).sum(1),
    )
    counts = [torch.bincount(each, minlength=classes) for each in chosen]
    return torch.cat([torch.stack(each).sum(1), *(count.to(expected) for count in counts)])


def judged(sums: Tensor) -> Verdict:
    """The verdict on sums of images.

    The regret of n images is a sum of independent numbers from 0 to 1, so by Bernstein's inequality it exceeds its mean
    by t with a probability of at most exp(-t^2 / (2 V + 2 t / 3)), where V is its variance: for a model that mends a
    share of the errors, at most about that of the true classes, which is taken.

    >>> sure, other = torch.tensor([[9.0, 0.0]]), torch.tensor([[0.0, 9.0]])
    >>> judged(50 * sums_of(sure, sure)).collapsed, judged(50 * sums_of(sure, other)).collapsed
    (False, True)
    """
    images, agreed, regret, expected, variance, entropy, *counts = sums.tolist()
    chance = CHANCE / 3 + (CHANCE**2 / 9 + 2 * CHANCE * max(variance, 0.0)) ** 0.5
    half = len(counts) // 2
    moved = sum(abs(one - other) for one, other in zip(counts[:half], counts[half:], strict=True)) / 2
    allowed = MARGIN * images + MENDED * expected + chance
    return Verdict(*(number / max(images, 1.0) for number in (agreed, regret, allowed, moved, entropy)))
