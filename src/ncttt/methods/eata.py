"""ETA and EATA: lower the entropy of images that are certain and new, and hold on to the weights that matter.

With H the entropy of an image's softmax p, E = margin * ln C and m the moving mean of the p that were learned from, an
image counts if H < E and cos(p, m) < redundancy. The loss is the mean over these of exp(E - H) H, the weight without a
gradient; EATA adds alpha * sum_i F_i (theta_i - theta0_i)^2, F the diagonal of the source's Fisher matrix.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import log
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ncttt.methods.affine import AffineMethod
from ncttt.methods.base import Objective
from ncttt.methods.shared import check_numbers, check_whole, entropies, number_of_classes, own_pass
from ncttt.model.branched import Branched, Features
from ncttt.model.modes import evaluating

FISHER_BATCH = 64  # images whose gradients are averaged before they are squared, as the weight `alpha` expects


class MeanPrediction(nn.Module):
    """The moving mean of the predictions that were learned from; all zeros before the first."""

    mean: Tensor

    def __init__(self, classes: int):
        super().__init__()
        self.register_buffer("mean", torch.zeros(classes))

    def move(self, predictions: Tensor) -> None:
        """Towards the mean of predictions `(N, classes)` by a tenth, or all the way if they are the first."""
        self.mean.lerp_(predictions.mean(0), 0.1 if bool(self.mean.any()) else 1.0)


@dataclass(frozen=True, kw_only=True)
class ETA(AffineMethod):
    """Entropy of certain images that differ from those before; EATA without its anchor.

    `margin`: the entropy, as a share of ln C, below which an image counts. `redundancy`: the cosine with the moving
    mean of predictions from which on an image tells nothing new.
    """

    name: ClassVar[str] = "eta"
    title: ClassVar[str] = "ETA"
    place: ClassVar[float] = 41

    margin: float = 0.4
    redundancy: float = 0.4

    def __post_init__(self) -> None:
        super().__post_init__()
        check_numbers(self, margin=0, redundancy=0)

    def memory(self, model: Branched) -> MeanPrediction:
        return MeanPrediction(number_of_classes(model))

    def adaptation_loss(self, model: Branched, images: Tensor) -> Objective:
        logits = model(images)
        entropy = entropies(logits)
        limit = self.margin * log(logits.shape[1])
        counts = self._counts(model, logits.detach(), entropy.detach() < limit)
        if not bool(counts.any()):
            return self.objective(None, logits)
        weighted = (limit - entropy.detach()).exp() * entropy
        return self.objective(weighted[counts].mean() + self.anchor(model), logits)

    def anchor(self, model: Branched) -> Tensor | float:
        """What moving away from the source costs; nothing here."""
        return 0.0

    def _counts(self, model: Branched, logits: Tensor, certain: Tensor) -> Tensor:
        """Of certain images `(B,)` those whose prediction is new, which then moves the mean."""
        memory, predictions = model.memory, logits.softmax(1)
        assert isinstance(memory, MeanPrediction)
        # Before the first image the mean is zero, and so is every cosine with it: all are new.
        counts = certain & (F.cosine_similarity(memory.mean[None], predictions, dim=1) < self.redundancy)
        if bool(counts.any()):
            memory.move(predictions[counts])
        return counts


class FisherMatrix(nn.Module):
    """The diagonal of the Fisher matrix of what moves, all parameters in one row."""

    diagonal: Tensor

    def __init__(self, size: int):
        super().__init__()
        self.register_buffer("diagonal", torch.zeros(size))


@dataclass(frozen=True, kw_only=True)
class EATA(ETA):
    """ETA with an anchor at the source: what the source's predictions depend on most moves least.

    `alpha`: weight of the anchor. `fisher_images`: how many source images the Fisher matrix is measured on, with the
    model's own labels. `ncttt.calibrated(net, EATA(), source_images)` makes a model for it.
    """

    name: ClassVar[str] = "eata"
    title: ClassVar[str] = "EATA"
    place: ClassVar[float] = 42
    has_branch: ClassVar[bool] = True
    trains: ClassVar[Literal["joint", "branch", "nothing"]] = "nothing"
    needs: ClassVar[str] = "Fisher matrix"
    branch_settings: ClassVar[tuple[str, ...]] = ("fisher_images",)

    alpha: float = 1.0
    fisher_images: int = 2000

    def __post_init__(self) -> None:
        super().__post_init__()
        check_numbers(self, alpha=0)
        check_whole(self, fisher_images=1)

    def build_branch(self, model: Branched, features: Features, logits: Tensor) -> FisherMatrix:
        return FisherMatrix(sum(parameter.numel() for parameter in self.parameters(model).values()))

    @torch.inference_mode(False)
    @torch.enable_grad()
    def calibrate(self, model: Branched, batches: Iterable[Tensor | Sequence[Tensor]]) -> None:
        # Stand-ins, because the parameters of a user's network may be frozen.
        moved = {f"classifier.{name}": p.detach().requires_grad_() for name, p in self.parameters(model).items()}
        squares = []
        with evaluating(model), own_pass(model):
            for images in _groups(batches, self.fisher_images):
                logits = torch.func.functional_call(model, moved, (images.to(model.mean),))
                loss = F.cross_entropy(logits, logits.argmax(1))
                squares.append(_row(torch.autograd.grad(loss, list(moved.values()))).square())
        _fisher(model).copy_(torch.stack(squares).mean(0))

    def forget(self, model: Branched) -> None:
        _fisher(model).zero_()

    def anchor(self, model: Branched) -> Tensor:
        source = model.source_parameters()
        moves = _row(p - source[name] for name, p in self.parameters(model).items())
        return self.alpha * (_fisher(model) * moves.square()).sum()


def _fisher(model: Branched) -> Tensor:
    assert isinstance(model.branch, FisherMatrix)
    return model.branch.diagonal


def _row(tensors: Iterable[Tensor]) -> Tensor:
    return torch.cat([tensor.flatten() for tensor in tensors])


def _groups(batches: Iterable[Tensor | Sequence[Tensor]], count: int) -> Iterator[Tensor]:
    """The first `count` images in groups of 64, however they came."""
    images = (image for batch in batches for image in (batch if isinstance(batch, Tensor) else batch[0]))
    first = islice(images, count)
    while group := list(islice(first, FISHER_BATCH)):
        yield torch.stack(group)
