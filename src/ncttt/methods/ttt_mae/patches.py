"""Images as patches: their pixels, which of them are hidden, and images in which those are blank."""

import torch
from torch import Generator, Tensor

from ncttt.base.parallel import draw

EPSILON = 1e-6  # added to a patch's variance, so that a flat patch becomes zeros


def patchify(images: Tensor, size: int) -> Tensor:
    """Images `(B, C, H, W)` as patches `(B, N, size * size * C)`, row by row, as their pixels within them.

    >>> patchify(torch.arange(16.0).view(1, 1, 4, 4), 2)[0, 1].tolist()
    [2.0, 3.0, 6.0, 7.0]
    """
    tiles = images.unflatten(3, (-1, size)).unflatten(2, (-1, size))
    return tiles.permute(0, 2, 4, 3, 5, 1).flatten(3).flatten(1, 2)


def normalised(patches: Tensor) -> Tensor:
    """Each patch `(..., pixels)` with mean 0 and variance 1, so that predicting its mean costs 1."""
    variance, mean = torch.var_mean(patches, -1, correction=0, keepdim=True)
    return (patches - mean) / (variance + EPSILON).sqrt()


def random_split(images: Tensor, patches: int, hidden: int) -> tuple[Tensor, Tensor]:
    """For every image the indices of its visible patches `(B, patches - hidden)` and of its hidden ones `(B, hidden)`.

    Every image has random ones of its own; over several processes they are those that one process would draw.
    """

    def sample(like: Tensor, generator: Generator | None) -> Tensor:
        return torch.rand(len(like), patches, generator=generator, device=like.device)

    order = draw(sample, images[:, 0, 0, 0]).argsort(1)
    return order[:, hidden:], order[:, :hidden]


def blanked(images: Tensor, hidden: Tensor, size: int, colour: Tensor) -> Tensor:
    """Images whose hidden patches, indices `(B, M)`, have the `colour` `(C, 1, 1)`."""
    rows, columns = images.shape[2] // size, images.shape[3] // size
    covered = torch.zeros(len(images), rows * columns, dtype=torch.bool, device=images.device)
    covered = covered.scatter(1, hidden, True).view(-1, 1, rows, columns)
    return torch.where(covered.repeat_interleave(size, 2).repeat_interleave(size, 3), colour, images)


def chosen(tokens: Tensor, indices: Tensor) -> Tensor:
    """Of each image's tokens `(B, N, C)` those of its indices `(B, M)`: `(B, M, C)`."""
    return tokens.gather(1, indices.unsqueeze(2).expand(-1, -1, tokens.shape[2]))
