"""A first convolution that whitens the training images: learning begins with all of their detail at one scale."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ncttt.base.errors import InputError

PATCH = 2  # a patch of 2x2 pixels and three colours has 12 directions; with both signs they fill 24 channels
FLOOR = 5e-4  # added to a variance, so that directions in which the images vary little are not blown up
EMPTY = 1e-5  # a variance that is rounding, as across the colours of grey images


def whiten_stem(net: nn.Module, batches: Iterable[Tensor]) -> None:
    """Let the first convolution begin with filters whose results on the images' patches are white.

    The filters are the principal directions of all 2x2 patches, scaled to unit variance, the strongest first, each with
    both signs, because a ReLU follows; channels that are left keep their random filters. The batches are of images as
    the network gets them: normalised.
    """
    covariance, colours = _covariance(batches)
    stem = next((module for module in net.modules() if isinstance(module, nn.Conv2d)), None)
    if stem is None or stem.groups > 1 or min(stem.kernel_size) < PATCH or stem.in_channels != colours:
        raise InputError(
            f"whiten needs a network that begins with a convolution of {PATCH} pixels and more on images of "
            f"{colours} channels; found {stem}"
        )
    variances, directions = torch.linalg.eigh(covariance)
    filters = (directions / (variances + FLOOR).sqrt()).T[variances > EMPTY].flip(0)
    filters = filters[: stem.out_channels // 2].view(-1, colours, PATCH, PATCH)
    top, left = ((size - PATCH) // 2 for size in stem.kernel_size)
    with torch.no_grad():
        stem.weight[: 2 * len(filters)] = 0
        stem.weight[: 2 * len(filters), :, top : top + PATCH, left : left + PATCH] = torch.cat([filters, -filters])


def _covariance(batches: Iterable[Tensor]) -> tuple[Tensor, int]:
    """The covariance of all patches, and how many channels the images have."""
    count, total, squares, colours = 0, torch.zeros(()), torch.zeros(()), 0
    for images in batches:
        patches = F.unfold(images, PATCH).transpose(0, 1).flatten(1)
        count, colours = count + patches.shape[1], images.shape[1]
        total, squares = total + patches.sum(1), squares + patches @ patches.T
    mean = total / count
    return squares / count - torch.outer(mean, mean), colours
