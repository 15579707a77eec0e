"""Rotations of a batch of images, and the branch that predicts them."""

import torch
from torch import Tensor, nn

from ncttt.base.errors import InputError
from ncttt.model.branched import Features
from ncttt.model.positions import pooled


class RotationBranch(nn.Module):
    """A body that makes a vector of the features, and a linear layer from it to the four rotations."""

    def __init__(self, body: nn.Module, features: Tensor):
        super().__init__()
        self.body = body
        with torch.no_grad():
            width = body(features.clone()).shape[1]
        self.readout = nn.Linear(width, 4)

    def forward(self, features: Features) -> Tensor:
        """Logits `(B, 4)` of the rotations."""
        return self.readout(self.body(features))


class PooledBody(nn.Module):
    """Features averaged over positions, then one hidden layer as wide as they are."""

    def __init__(self, features: Tensor):
        super().__init__()
        width = pooled(features).shape[1]
        self.hidden = nn.Linear(width, width)

    def forward(self, features: Tensor) -> Tensor:
        return self.hidden(pooled(features)).relu()


def rotate_all(images: Tensor) -> tuple[Tensor, Tensor]:
    """The batch in all four rotations `(4 * B, C, S, S)`, and the number of quarter turns of each image `(4 * B,)`.

    >>> rotated, turns = rotate_all(torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]]))
    >>> rotated[1, 0].tolist(), turns.tolist()
    ([[2.0, 4.0], [1.0, 3.0]], [0, 1, 2, 3])
    """
    rotated = torch.cat([torch.rot90(_square(images), turns, (2, 3)) for turns in range(4)])
    if images.is_contiguous(memory_format=torch.channels_last):
        rotated = rotated.contiguous(memory_format=torch.channels_last)
    return rotated, torch.arange(4, device=images.device).repeat_interleave(len(images))


def rotate_each(images: Tensor) -> tuple[Tensor, Tensor]:
    """Every image in one random rotation `(B, C, S, S)`, and its number of quarter turns `(B,)`."""
    turns = torch.randint(4, (len(images),), device=images.device)
    chosen = turns * len(images) + torch.arange(len(images), device=images.device)
    return rotate_all(images)[0][chosen], turns


def _square(images: Tensor) -> Tensor:
    if images.shape[2] != images.shape[3]:
        height, width = images.shape[2:]
        raise InputError(f"TTT turns images by 90 degrees, so they must be square; found {height}x{width}")
    return images
