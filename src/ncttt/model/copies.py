"""Copies of a batch that a step learns from: shifted by a few pixels or cut out, every other one mirrored."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from ncttt.base.seeding import own_generator
from ncttt.model.mirrors import mirror


def copies_of(images: Tensor, copies: int, mirrored: bool = True, crop: float = 1.0) -> Tensor:
    """So many copies of the images, one after another: (B, C, H, W) -> (copies * B, C, h, w).

    Whole copies begin with the images themselves and, if `mirrored`, their mirror images; the others are shifted by up
    to a sixteenth of the image, its edge reflected. With a `crop` below one, all are parts of the images with that
    share of their sides. A copy has one place for the whole batch.

    >>> copies_of(torch.rand(8, 3, 32, 32), copies=4).shape, copies_of(torch.rand(8, 3, 32, 32), 3, crop=0.75).shape
    (torch.Size([32, 3, 32, 32]), torch.Size([24, 3, 24, 24]))
    """
    if crop < 1:
        source, (_, *size), made = images, crop_shape(images, crop), []
    elif copies == 1:
        return images
    else:
        size = images.shape[2:]
        reach = max(1, min(size) // 16)
        source, made = F.pad(images, [reach] * 4, mode="reflect"), [images, mirror(images)] if mirrored else [images]
    while len(made) < copies:
        window = _window(source, *size)
        made.append(mirror(window) if mirrored and len(made) % 2 else window)
    return torch.cat(made)


def crop_shape(images: Tensor, crop: float) -> tuple[int, int, int]:
    """Channels, height and width of a part of images `(B, C, H, W)` that has this share of their sides."""
    height, width = (max(1, round(crop * side)) for side in images.shape[2:])
    return images.shape[1], height, width


def _window(images: Tensor, height: int, width: int) -> Tensor:
    top, left = (
        int(torch.randint(whole - part + 1, (), generator=own_generator()))
        for whole, part in zip(images.shape[2:], (height, width), strict=True)
    )
    return images[:, :, top : top + height, left : left + width]
