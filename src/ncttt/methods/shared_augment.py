"""Strong augmentations at test time, which CoTTA and RoTTA share; a batch at a time, on the batch's device.

Colours first: brightness, contrast, saturation, hue and gamma, in an order that is drawn once for the batch. Then the
image is turned, shifted, scaled and perhaps mirrored, its edge repeated outside, blurred a little, and gets noise.
Every image has random numbers of its own. Ranges are those of CoTTA's code for 32-pixel images.
"""

import math

import torch
from torch import Generator, Tensor
from torch.nn import functional as F

from ncttt.base.seeding import own_generator
from ncttt.methods.shared_colours import Colours

DEGREES, SHIFT, SCALE = 15.0, 1 / 16, (0.9, 1.1)
BLUR, TAPS = (0.001, 0.5), 5  # standard deviation in pixels, and pixels of the kernel
NOISE = 0.005
COLOURS = Colours(brightness=0.4, contrast=0.3, saturation=0.5, hue=0.06, gamma=0.3)


def strong_views(images: Tensor, generator: Generator | None = None) -> Tensor:
    """One strongly augmented view of each of images `(B, C, H, W)` in [0, 1], of the same shape.

    >>> strong_views(torch.rand(8, 3, 32, 32)).shape
    torch.Size([8, 3, 32, 32])
    """
    draws = _Draws(images, generator)
    views = COLOURS.recoloured(images.to(draws.dtype).clamp(0, 1), generator)
    angles = draws.uniform(-math.radians(DEGREES), math.radians(DEGREES))
    shifts = torch.stack([draws.uniform(-SHIFT, SHIFT), draws.uniform(-SHIFT, SHIFT)], 1)
    mirrored = draws.uniform(0, 1) < 0.5
    views = warped(views, angles, shifts, draws.uniform(*SCALE), mirrored)
    views = blurred(views, draws.uniform(*BLUR))
    return (views + NOISE * draws.normal()).clamp(0, 1).to(images.dtype)


def warped(images: Tensor, angles: Tensor, shifts: Tensor, scales: Tensor, mirrored: Tensor) -> Tensor:
    """Each image turned clockwise by its angle, shifted by shares of width and height, scaled, mirrored where told."""
    height, width = images.shape[2:]
    cosines, sines = angles.cos() / scales, angles.sin() / scales
    ratio = height / width  # so that a turn is one in pixels, not in shares of the image
    # Where the pixels of the result come from, in the coordinates of `grid_sample`, from -1 to 1.
    across = torch.stack([cosines, sines * ratio], 1)
    down = torch.stack([-sines / ratio, cosines], 1)
    inverse = torch.stack([across, down], 1)
    moved = -(inverse @ (2 * shifts)[:, :, None])
    flip = torch.where(mirrored, -1.0, 1.0).to(images)
    inverse = torch.cat([inverse[:, :, :1] * flip[:, None, None], inverse[:, :, 1:]], 2)
    grid = F.affine_grid(torch.cat([inverse, moved], 2), list(images.shape), align_corners=False)
    return F.grid_sample(images, grid, mode="bilinear", padding_mode="border", align_corners=False)


def blurred(images: Tensor, sigmas: Tensor) -> Tensor:
    """Each image under a Gaussian kernel of its own width, reflected at its edge."""
    reach = min(TAPS // 2, *(size - 1 for size in images.shape[2:]))
    places = torch.arange(-reach, reach + 1, device=images.device)
    kernels = torch.exp(-0.5 * (places / sigmas[:, None]).square())
    kernels = kernels / kernels.sum(1, keepdim=True)
    for axis, pad in ((2, (0, 0, reach, reach)), (3, (reach, reach, 0, 0))):
        padded, size = F.pad(images, pad, mode="reflect"), images.shape[axis]
        taps = (padded.narrow(axis, start, size) for start in range(2 * reach + 1))
        weights = kernels.unbind(1)
        images = torch.stack([w.view(-1, 1, 1, 1) * tap for w, tap in zip(weights, taps, strict=True)]).sum(0)
    return images


class _Draws:
    """Random numbers for a batch, one for each image, in at least single precision."""

    def __init__(self, images: Tensor, generator: Generator | None):
        self.images = images
        self.device = images.device if generator is None else generator.device
        self.generator = generator or own_generator(self.device)
        self.dtype = torch.promote_types(images.dtype, torch.float32)

    def uniform(self, low: float, high: float) -> Tensor:
        numbers = torch.rand(len(self.images), generator=self.generator, device=self.device)
        return (low + (high - low) * numbers).to(self.images.device, self.dtype)

    def normal(self) -> Tensor:
        numbers = torch.randn(self.images.shape, generator=self.generator, device=self.device)
        return numbers.to(self.images.device, self.dtype)
