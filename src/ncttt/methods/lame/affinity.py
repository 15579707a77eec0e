"""How alike the images of a batch are: affinity matrices `(N, N)` of L2-normalised features, from one Gram matrix."""

from collections.abc import Callable

import torch
from torch import Tensor


def linear_affinity(features: Tensor, k: int) -> Tensor:
    """Cosine similarities of features `(N, d)`; symmetric and positive semi-definite."""
    return features @ features.T


def knn_affinity(features: Tensor, k: int) -> Tensor:
    """1 where column j is among the k nearest neighbours of row i, which is never its own neighbour; else 0."""
    count = min(k, len(features) - 1)
    nearest = _without_self(_squared_distances(features)).topk(count, dim=1, largest=False).indices
    return features.new_zeros(len(features), len(features)).scatter_(1, nearest, 1.0)


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


def _squared_distances(features: Tensor) -> Tensor:
    gram = features @ features.T
    lengths = gram.diagonal()
    return (lengths[:, None] + lengths[None, :] - 2 * gram).clamp_min(0)


def _without_self(squared: Tensor) -> Tensor:
    """With infinity on the diagonal: a copy is as near as the image itself, so their order cannot tell them apart."""
    return squared.clone().fill_diagonal_(torch.inf)
