"""Random views of images for contrastive learning, a batch at a time and on the batch's device.

A view is a crop of random area and shape scaled to the old size, mirrored or not, with other brightness, contrast,
saturation and hue, sometimes grey. Every image has random numbers of its own; images are float `(B, C, H, W)` in
[0, 1], before and after. The defaults are SimCLR's for 32-pixel images.
"""

import math
from dataclasses import dataclass

import torch
from torch import Generator, Tensor
from torch.nn import functional as F

from ncttt.base.errors import InputError
from ncttt.base.seeding import own_generator
from ncttt.methods.shared_colours import Colours, grey, spread, uniform

TRIES = 10  # to draw a crop that fits


def random_boxes(
    images: Tensor, area: tuple[float, float], ratio: tuple[float, float], generator: Generator | None = None
) -> Tensor:
    """Boxes `(B, 4)` of whole pixels: top, left, height, width.

    The area is a uniform share of the image's, width / height log-uniform. Of ten draws the first that fits counts;
    the whole image stands in where none does.
    """
    height, width = images.shape[2:]
    device = images.device if generator is None else generator.device
    generator = generator or own_generator(device)
    numbers = torch.rand(4, len(images), TRIES, generator=generator, device=device).to(images.device, torch.float32)
    areas = height * width * (area[0] + (area[1] - area[0]) * numbers[0])
    low, high = math.log(ratio[0]), math.log(ratio[1])
    ratios = (low + (high - low) * numbers[1]).exp()
    heights, widths = (areas / ratios).sqrt().round(), (areas * ratios).sqrt().round()
    fits = (heights >= 1) & (widths >= 1) & (heights <= height) & (widths <= width)
    tops = (numbers[2] * (height - heights + 1)).floor()
    lefts = (numbers[3] * (width - widths + 1)).floor()
    drawn = torch.stack([tops, lefts, heights, widths], dim=-1)
    first = fits.int().argmax(1)[:, None, None].expand(-1, 1, 4)
    whole = torch.tensor([0, 0, height, width], dtype=drawn.dtype, device=drawn.device)
    return torch.where(fits.any(1, keepdim=True), drawn.gather(1, first)[:, 0], whole)


def resized_crops(images: Tensor, boxes: Tensor, flips: Tensor) -> Tensor:
    """Every image's box `(top, left, height, width)`, scaled bilinearly to the image's size, mirrored where told."""
    height, width = images.shape[2:]
    tops, lefts, heights, widths = boxes.to(images.dtype).unbind(1)
    rows = _sampled(tops, heights, height)
    columns = _sampled(lefts, widths, width)
    columns = torch.where(flips[:, None], columns.flip(1), columns)
    grid = torch.stack(
        torch.broadcast_tensors((2 * columns[:, None, :] + 1) / width - 1, (2 * rows[:, :, None] + 1) / height - 1), -1
    )
    return F.grid_sample(images, grid, mode="bilinear", padding_mode="border", align_corners=False)


@dataclass(frozen=True, kw_only=True)
class Views(Colours):
    """How views are made: ranges of crops, strengths of colour changes, and how often each happens.

    >>> Views()(torch.rand(8, 3, 32, 32)).shape
    torch.Size([8, 3, 32, 32])
    """

    area: tuple[float, float] = (0.2, 1.0)
    ratio: tuple[float, float] = (3 / 4, 4 / 3)
    jittered: float = 0.8
    greyed: float = 0.2
    flipped: float = 0.5

    def __call__(self, images: Tensor, generator: Generator | None = None) -> Tensor:
        """One view of each image."""
        if images.ndim != 4 or not images.is_floating_point():
            raise InputError(f"views are made of float images (B, C, H, W); found {tuple(images.shape)} {images.dtype}")
        boxes = random_boxes(images, self.area, self.ratio, generator)
        views = resized_crops(images, boxes, self._chosen(images, self.flipped, generator))
        jittered = self.recoloured(views, generator)
        views = torch.where(spread(self._chosen(images, self.jittered, generator)), jittered, views)
        if images.shape[1] == 3:
            views = torch.where(spread(self._chosen(images, self.greyed, generator)), grey(views), views)
        if images.is_contiguous(memory_format=torch.channels_last):
            views = views.contiguous(memory_format=torch.channels_last)
        return views

    def _chosen(self, images: Tensor, probability: float, generator: Generator | None) -> Tensor:
        return uniform(images, generator) < probability


def two_views(images: Tensor, generator: Generator | None = None) -> Tensor:
    """Two views of each image, `(2 * B, C, H, W)`: the first of all, then the second of all.

    >>> two_views(torch.rand(4, 3, 32, 32)).shape
    torch.Size([8, 3, 32, 32])
    """
    doubled = torch.cat([images, images])
    return Views()(doubled, generator)


def _sampled(starts: Tensor, lengths: Tensor, size: int) -> Tensor:
    """Where the `size` pixels of a stretched line `(B, size)` lie in the image; never outside their crop."""
    places = (torch.arange(size, device=starts.device, dtype=starts.dtype) + 0.5) / size
    inside = torch.minimum((places * lengths[:, None] - 0.5).clamp(min=0), lengths[:, None] - 1)
    return starts[:, None] + inside
