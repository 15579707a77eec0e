"""A first convolution that whitens the training images: learning begins with all of their detail at one scale."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ncttt.errors import InputError

PATCH = 2  # pixels a side: of 12 values with three colours, which 24 channels hold whole, once with either sign
FLOOR = 5e-4  # of a variance, so that directions in which the images hardly vary are not blown up


def whiten_stem(net: nn.Module, images: Tensor) -> None:
    """Let the first convolution begin with filters whose results on the images' patches are white.

    The filters are the principal directions of all 2x2 patches, scaled to unit variance, the strongest first, each with
    both signs, because a ReLU follows; channels that are left keep their random filters. `images` are normalised as the
    network gets them.
    """
    stem = next((module for module in net.modules() if isinstance(module, nn.Conv2d)), None)
    if stem is None or stem.groups > 1 or min(stem.kernel_size) < PATCH or stem.in_channels != images.shape[1]:
        raise InputError(
            f"whiten needs a network that begins with a convolution of {PATCH} pixels and more on images of "
            f"{images.shape[1]} channels; found {stem}"
        )
    patches = F.unfold(images, PATCH).transpose(1, 2).flatten(0, 1)
    variances, directions = torch.linalg.eigh(patches.T @ patches / len(patches))
    filters = (directions / (variances + FLOOR).sqrt()).T.flip(0).view(-1, images.shape[1], PATCH, PATCH)
    filters = filters[: stem.out_channels // 2]
    with torch.no_grad():
        stem.weight[: 2 * len(filters)] = 0
        stem.weight[: 2 * len(filters), :, :PATCH, :PATCH] = torch.cat([filters, -filters])
