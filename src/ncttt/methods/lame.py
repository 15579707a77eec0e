"""LAME: correct the predictions of a batch so that images with similar features agree; the network stays as it is.

With p the softmax, u = -log(p + 1e-10) and W an affinity of the images' features, the assignments Y start at p and
follow Y <- softmax(-u + weight W Y), until the energy sum(u Y - weight (W Y) Y + Y log Y) no longer changes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from ncttt.base.errors import InputError, nearest
from ncttt.methods.base import Method
from ncttt.model.branched import Branched
from ncttt.model.features import penultimate_features


def linear_affinity(features: Tensor, k: int) -> Tensor:
    """Cosine similarities of features `(N, d)`; symmetric and positive semi-definite."""
    return features @ features.T


def knn_affinity(features: Tensor, k: int) -> Tensor:
    """1 where column j is among the k nearest neighbours of row i, which is never its own neighbour; else 0."""
    count = min(k, len(features) - 1)
    neighbours = _without_self(_squared_distances(features)).topk(count, dim=1, largest=False).indices
    return features.new_zeros(len(features), len(features)).scatter_(1, neighbours, 1.0)


def rbf_affinity(features: Tensor, k: int) -> Tensor:
    """exp(-d^2 / 2 s^2), where s is the batch's mean distance to the k-th neighbour; positive semi-definite."""
    squared = _squared_distances(features)
    count = min(k, len(features) - 1)
    if count == 0:
        return torch.ones_like(squared)
    kth = _without_self(squared).kthvalue(count, dim=1).values.sqrt()
    # Where most images are copies of others s is 0, and the limit is 1 between copies and 0 elsewhere.
    smallest = torch.finfo(squared.dtype).tiny
    return torch.exp(-squared / (2 * kth.mean().square()).clamp_min(smallest))


AFFINITIES: dict[str, Callable[[Tensor, int], Tensor]] = {
    "linear": linear_affinity,
    "knn": knn_affinity,
    "rbf": rbf_affinity,
}


@dataclass(frozen=True, kw_only=True)
class Lame(Method):
    """Laplacian adjustment of a batch's predictions, with the source's statistics.

    `affinity`: `linear`, `knn` or `rbf`. `k`: how many neighbours `knn` joins, or which one gives `rbf` its width.
    `weight`: of agreement, lambda in the paper. `layer`: the one whose output is compared; by default the input of the
    last linear layer is. The logits are log-probabilities.
    """

    name: ClassVar[str] = "lame"
    title: ClassVar[str] = "LAME"
    place: ClassVar[float] = 20

    affinity: str = "knn"
    k: int = 5
    weight: float = 1.0
    max_steps: int = 100
    tolerance: float = 1e-8
    layer: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.affinity not in AFFINITIES:
            raise InputError(f"no affinity {self.affinity!r}{nearest(str(self.affinity), AFFINITIES)}")
        for field, least in {"k": 1, "max_steps": 0}.items():
            value = getattr(self, field)
            if not isinstance(value, int) or value < least:
                raise InputError(f"{field} must be a whole number of at least {least}; found {value!r}")
        for field in ("weight", "tolerance"):
            if not 0 <= getattr(self, field) < float("inf"):
                raise InputError(f"{field} must be finite and not negative; found {getattr(self, field)!r}")

    @torch.no_grad()
    def predict(self, model: Branched, images: Tensor) -> Tensor:
        logits, features = penultimate_features(model, images, self.layer)
        # In single precision an energy has too few digits for the tolerance, and distances of near copies are noise.
        exact = torch.float32 if logits.device.type == "mps" else torch.float64
        affinity = AFFINITIES[self.affinity](F.normalize(features.to(exact), dim=1), self.k)
        adjusted = adjust(logits.to(exact).softmax(1), affinity, self.weight, self.max_steps, self.tolerance)
        return adjusted.to(logits.dtype)


def adjust(probabilities: Tensor, affinity: Tensor, weight: float, max_steps: int, tolerance: float) -> Tensor:
    """Log-assignments `(N, classes)` after the steps from probabilities `(N, classes)` under an affinity `(N, N)`."""
    unary = -(probabilities + 1e-10).log()
    log_assigned, agreement = -unary, weight * (affinity @ probabilities)
    last_energy = float("nan")
    for _ in range(max_steps):
        log_assigned = (agreement - unary).log_softmax(1)
        assigned = log_assigned.exp()
        agreement = weight * (affinity @ assigned)  # for the energy of these assignments, and for the next step
        energy = (assigned * (unary - agreement + log_assigned)).sum().item()
        if abs(energy - last_energy) <= tolerance * abs(last_energy):
            break
        last_energy = energy
    return log_assigned


def _squared_distances(features: Tensor) -> Tensor:
    gram = features @ features.T
    lengths = gram.diagonal()
    return (lengths[:, None] + lengths[None, :] - 2 * gram).clamp_min(0)


def _without_self(squared: Tensor) -> Tensor:
    """With infinity on the diagonal: a copy is as near as the image itself, so their order cannot tell them apart."""
    return squared.clone().fill_diagonal_(torch.inf)
