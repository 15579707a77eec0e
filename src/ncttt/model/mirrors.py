"""Mirror images: the mean of what a classifier says of an image and of its mirror image."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def mirror(images: Tensor) -> Tensor:
    """Images `(B, C, H, W)` with left and right exchanged."""
    return images.flip(3)


def mean_logits(first: Tensor, second: Tensor) -> Tensor:
    """The logarithm of the mean of two softmax distributions, given their logits `(B, classes)`.

    >>> mean_logits(torch.zeros(1, 2), torch.tensor([[0.0, 100.0]])).exp()
    tensor([[0.2500, 0.7500]])
    """
    return torch.logaddexp(first.log_softmax(1), second.log_softmax(1)) - math.log(2)
