"""ROID: a loss whose gradient does not vanish for certain images, weights by what is new and certain, and an anchor.

With p the softmax of an image, clipped at 0.99, the loss is -sum_k p_k log(p_k / (1 - p_k)), plus the symmetric
cross-entropy with the prediction for an augmented view. An image weighs exp(sharpness * diversity * certainty), or
nothing if its diversity is below the batch's mean: diversity is 1 - cos(p, moving mean of predictions), certainty the
negative entropy, each stretched to [0, 1] over the batch. After each step the weights are drawn to the source's. The
prediction is p times the batch's own, smoothed class shares: on probabilities, which on logits is a sum.
"""

from dataclasses import asdict, dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from ncttt.base.errors import InputError
from ncttt.methods.affine import AffineMethod
from ncttt.methods.base import Objective
from ncttt.methods.eata import MeanPrediction
from ncttt.methods.shared import check_numbers, entropies, need_pixels, number_of_classes
from ncttt.methods.shared_augment import COLOURS
from ncttt.methods.ttt_plus.views import Views
from ncttt.model.branched import Branched
from ncttt.model.norm import aside

CLIP, SMALLEST = 0.99, 1e-5  # the largest probability that has a gradient, and what keeps a logarithm finite
# Crops in the colours of CoTTA's views but for gamma; see the page of the method.
VIEWS = Views(area=(0.8, 1.0), ratio=(0.9, 1.1), jittered=1.0, greyed=0.0, **asdict(replace(COLOURS, gamma=0.0)))


@dataclass(frozen=True, kw_only=True)
class ROID(AffineMethod):
    """Soft likelihood ratio with weights, consistency under augmentation, weights near the source, corrected shares.

    `sharpness`: how much more new and certain images count. `consistency`: weight of the agreement with a view. `back`:
    how far the weights are drawn to the source's after each step. `correction`: whether the prediction is corrected by
    the shares of the classes in the batch.
    """

    name: ClassVar[str] = "roid"
    title: ClassVar[str] = "ROID"
    place: ClassVar[float] = 46

    sharpness: float = 3.0
    consistency: float = 1.0
    back: float = 0.01
    correction: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_numbers(self, sharpness=0, consistency=0, back=0)
        if self.back > 1:
            raise InputError(f"back must be a share from 0 to 1; found {self.back!r}")

    def memory(self, model: Branched) -> MeanPrediction:
        memory = MeanPrediction(number_of_classes(model))
        memory.mean.fill_(1 / len(memory.mean))
        return memory

    def adaptation_loss(self, model: Branched, images: Tensor) -> Objective:
        logits = model(images)
        weights = self._weights(model, logits.detach())
        counts = weights.nonzero().flatten()
        loss = soft_likelihood_ratio(logits[counts])
        if self.consistency:
            need_pixels(model, images, "the views of ROID")
            with aside(model.batch_norms()):
                views = model(VIEWS(images[counts]))
            loss = loss + self.consistency * symmetric_cross_entropy(views, logits[counts])
        total = (weights[counts] * loss).sum() / len(images)
        return self.objective(total, self._corrected(logits.detach()))

    def after_step(self, model: Branched) -> None:
        source = model.source_parameters()
        for name, parameter in self.parameters(model).items():
            parameter.lerp_(source[name], self.back)

    def predict(self, model: Branched, images: Tensor) -> Tensor:
        return self._corrected(model(images))

    def _weights(self, model: Branched, logits: Tensor) -> Tensor:
        """Of each image `(B,)`, by the mean of predictions so far, which the batch then moves."""
        memory, predictions = model.memory, logits.softmax(1)
        assert isinstance(memory, MeanPrediction)
        diversity = _stretched(1 - F.cosine_similarity(memory.mean[None], predictions, dim=1))
        weights = (self.sharpness * diversity * _stretched(-entropies(logits))).exp()
        memory.move(predictions)
        return torch.where(diversity < diversity.mean(), 0, weights)

    def _corrected(self, logits: Tensor) -> Tensor:
        return logits + smoothed_shares(logits).log() if self.correction else logits


def soft_likelihood_ratio(logits: Tensor) -> Tensor:
    """-sum_k p_k log(p_k / (1 - p_k)) of each image `(B,)`, the softmax p clipped.

    >>> soft_likelihood_ratio(torch.tensor([[0.0, 0.0]])).abs() < 1e-4
    tensor([True])
    """
    probabilities = logits.softmax(1).clamp(max=CLIP)
    return -(probabilities * (probabilities / (1 - probabilities) + SMALLEST).log()).sum(1)


def symmetric_cross_entropy(one: Tensor, other: Tensor) -> Tensor:
    """The mean of the cross-entropies in both directions of two predictions, as logits `(B, classes)`: `(B,)`."""
    there, back = (-(a.softmax(1) * b.log_softmax(1)).sum(1) for a, b in ((one, other), (other, one)))
    return (there + back) / 2


def smoothed_shares(logits: Tensor) -> Tensor:
    """The mean prediction of a batch, with so much of the uniform one that few images decide little: `(classes,)`."""
    shares = logits.softmax(1).mean(0)
    smoothing = max(1 / len(logits), 1 / len(shares)) / shares.max()
    return (shares + smoothing) / (1 + smoothing * len(shares))


def _stretched(values: Tensor) -> Tensor:
    """Values `(B,)` from 0 to 1; all 0 where they are the same, as at a batch of one."""
    return (values - values.min()) / (values.max() - values.min()).clamp_min(torch.finfo(values.dtype).tiny)
