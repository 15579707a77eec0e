"""AugMix: three chains of one to three mild changes each, mixed with one another and with the image.

A batch at a time and on its device; every image has random numbers of its own. Changes keep what an image shows: turns,
shears, shifts, other contrast, fewer levels. Their strengths are those of severity 1 out of 10.
"""

import math
from collections.abc import Callable

import torch
from torch import Generator, Tensor
from torch.nn import functional as F

from ncttt.base.seeding import own_generator
from ncttt.data.augment import pad_crop_flip

CHAINS, LONGEST = 3, 3
LEVELS = 4  # changes of levels, which come before those of geometry
TURN, SHEAR, SHIFT, SOLAR = math.radians(3), 0.03, 1 / 30, 0.1  # at most: an angle, slopes, shares of a side, of white


def augmix(images: Tensor) -> Tensor:
    """One augmentation of each of images `(B, C, H, W)` in [0, 1]: cut, perhaps mirrored, mixed with its changes.

    >>> augmix(torch.rand(8, 3, 32, 32)).shape
    torch.Size([8, 3, 32, 32])
    """
    generator = own_generator(images.device)
    base = pad_crop_flip(images, min(images.shape[2:]) // 8, generator).contiguous()
    chains = base.repeat(CHAINS, 1, 1, 1)
    lengths = torch.randint(1, LONGEST + 1, (len(chains),), generator=generator, device=images.device)
    for step in range(LONGEST):
        _change(chains, step < lengths, generator)
    # Exponential numbers, normalised, are uniform over all weights of sum 1.
    weights = -_uniform((CHAINS, len(base)), base, generator).clamp_min(1e-6).log()
    weights = weights / weights.sum(0)
    mixed = (weights[:, :, None, None, None] * chains.unflatten(0, (CHAINS, -1))).sum(0)
    return torch.lerp(mixed, base, _spread(_uniform((len(base),), base, generator)))


def _change(images: Tensor, due: Tensor, generator: Generator | None) -> None:
    """Change those images that are `due`, in place, each in one of nine ways: four of its levels, five of its geometry.

    Random numbers are drawn for all, so that an image's own do not depend on which others are due.
    """
    bright = _strength(images, generator)
    kinds = torch.randint(LEVELS + 5, (len(images),), generator=generator, device=images.device)
    signs = 2 * (_uniform((len(images),), images, generator) < 0.5).to(images) - 1
    far = signs * _strength(images, generator)
    _put(images, due & (kinds == 0), stretched)
    _put(images, due & (kinds == 1), equalised)
    _put(images, due & (kinds == 2), solarised, bright)
    _put(images, due & (kinds == 3), posterised)
    _put(images, due & (kinds >= LEVELS), warped, kinds - LEVELS, far)


def _put(images: Tensor, chosen: Tensor, change: Callable[..., Tensor], *numbers: Tensor) -> None:
    """Put the chosen images, changed by numbers of their own, in their places."""
    places = chosen.nonzero().flatten()
    if len(places):
        images[places] = change(images[places], *(part[places] for part in numbers))


def stretched(images: Tensor) -> Tensor:
    """Each channel stretched to reach from 0 to 1; one of a single level stays."""
    low, high = images.amin((2, 3), keepdim=True), images.amax((2, 3), keepdim=True)
    return torch.where(high > low, (images - low) / (high - low).clamp_min(1e-6), images)


def equalised(images: Tensor) -> Tensor:
    """Each channel with its 256 levels used as evenly as can be; one of a single level stays."""
    levels = (images * 255).round().long().clamp(0, 255).flatten(2)
    counts = images.new_zeros(*levels.shape[:2], 256).scatter_add_(2, levels, images.new_ones(levels.shape))
    below = counts.cumsum(2)
    lowest = below.gather(2, levels.amin(2, keepdim=True))
    rest = levels.shape[2] - lowest
    even = (below.gather(2, levels) - lowest) / rest.clamp_min(1)
    return torch.where((rest > 0)[..., None], even.view_as(images), images)


def solarised(images: Tensor, strengths: Tensor) -> Tensor:
    """What is brighter than a level near white turned to its negative."""
    return torch.where(images >= 1 - SOLAR * _spread(strengths), 1 - images, images)


def posterised(images: Tensor) -> Tensor:
    """Sixteen levels in place of 256."""
    return (images * 255 / 16 + 1e-4).floor() * 16 / 255  # which a level of 8 bits must not miss by rounding


def warped(images: Tensor, kinds: Tensor, strengths: Tensor) -> Tensor:
    """Each image turned (kind 0), sheared along x or y (1, 2) or shifted (3, 4); those of other kinds stay."""
    turn, shear_x, shear_y, shift_x, shift_y = (torch.where(kinds == kind, strengths, 0) for kind in range(5))
    angle = TURN * turn
    rows = [
        torch.stack([angle.cos(), angle.sin() + SHEAR * shear_x, 2 * SHIFT * shift_x], 1),
        torch.stack([-angle.sin() + SHEAR * shear_y, angle.cos(), 2 * SHIFT * shift_y], 1),
    ]
    grid = F.affine_grid(torch.stack(rows, 1), list(images.shape), align_corners=False)
    moved = F.grid_sample(images, grid, mode="bilinear", padding_mode="border", align_corners=False)
    return torch.where(_spread(kinds >= 0), moved, images)


def _strength(images: Tensor, generator: Generator | None) -> Tensor:
    return 0.1 + 0.9 * _uniform((len(images),), images, generator)


def _uniform(shape: tuple[int, ...], like: Tensor, generator: Generator | None) -> Tensor:
    return torch.rand(shape, generator=generator, device=like.device).to(like)


def _spread(values: Tensor) -> Tensor:
    return values.view(-1, 1, 1, 1)
