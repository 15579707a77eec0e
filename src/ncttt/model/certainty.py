"""The source gate: leaves a batch to the source model when that is as confident on it as on held-out source images.

Two numbers of an image's logits l, both from one forward under source statistics: the confidence max softmax(l) and the
evidence log sum exp(l). Their means over a batch fall with the accuracy. Confidence alone is not enough: a strong shift
can make a network sure of one class for all images, but hardly by logits as strong as those of source images.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from ncttt.base.errors import InputError
from ncttt.base.seeding import Draws
from ncttt.model.modes import evaluating
from ncttt.model.norm import statistics
from ncttt.model.snapshot import Snapshot

if TYPE_CHECKING:
    from ncttt.model.branched import Branched

# What a batch may lack beside two standard errors: a point of confidence, a tenth of the spread of the evidence.
CONFIDENCE_MARGIN, EVIDENCE_MARGIN = 0.01, 0.1


class Look(NamedTuple):
    """What the source model says of a batch: logits `(B, classes)`, mean certainty, and whether it is enough."""

    logits: Tensor
    confidence: float
    evidence: float
    like_source: bool | None


class Gate:
    """Looks at batches with the weights that a snapshot has saved and the source's statistics, by one forward."""

    def __init__(self, model: Branched, snapshot: Snapshot):
        self.model, self.snapshot, self._draws = model, snapshot, Draws()
        self._draws.whole = True  # each look is a whole forward
        if not model.calibrated:
            raise InputError(
                "stop='source' needs to know how certain the model is of held-out source images: train with "
                "held_out=..., or call model.calibrate(ncttt.data.batches(held_out, 128)); a plain module becomes such "
                "a model by ncttt.Branched(net, None, method)"
            )

    @torch.no_grad()
    def look(self, images: Tensor) -> Look:
        """The source model on a batch; the model is then as it was before, wherever its stream has moved it."""
        with (
            self._draws.seeded(0, images.device),
            self.snapshot.saved(),
            statistics(self.model.batch_norms(), "source"),
        ):
            return judged(self.model, self.model(images))


def judged(model: Branched, logits: Tensor) -> Look:
    """Whether logits `(B, classes)` of a batch are as certain as those of source images; None before calibration."""
    confidence, evidence = certainty_of(logits).mean(1).tolist()
    levels = source_levels(model, len(logits))
    enough = None if levels is None else confidence >= levels[0] and evidence >= levels[1]
    return Look(logits, confidence, evidence, enough)


def certainty_of(logits: Tensor) -> Tensor:
    """Confidence and evidence `(2, B)` of logits `(B, classes)`.

    >>> certainty_of(torch.tensor([[0.0, 0.0], [0.0, 100.0]]))
    tensor([[  0.5000,   1.0000],
            [  0.6931, 100.0000]])
    """
    return torch.stack([logits.softmax(1).amax(1), logits.logsumexp(1)])


def source_levels(model: Branched, images: int) -> tuple[float, float] | None:
    """The least mean confidence and evidence of a batch of so many source images; None before calibration."""
    if not model.calibrated:
        return None
    (confidence, its_spread), (evidence, spread) = model.source_certainty.tolist()
    errors = 2 / images**0.5
    return confidence - errors * its_spread - CONFIDENCE_MARGIN, evidence - (errors + EVIDENCE_MARGIN) * spread


@torch.no_grad()
def measured_certainty(model: Branched, batches: Iterable[Tensor | Sequence[Tensor]]) -> Tensor:
    """Mean and spread over images of confidence and evidence, `(2, 2)`, under source statistics."""
    certainties = []
    with evaluating(model), statistics(model.batch_norms(), "source"):
        for batch in batches:
            images = batch if isinstance(batch, Tensor) else batch[0]
            model.check_images(images)
            certainties.append(certainty_of(model(images.to(model.mean))))
    if not certainties:
        raise InputError("calibration needs at least one batch of source images; found none")
    each = torch.cat(certainties, dim=1)
    return torch.stack([each.mean(1), each.std(1, correction=0)], dim=1)
