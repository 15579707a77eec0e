"""Crops of random area and shape, scaled to the size of the image; every image has its own."""

import math

import torch
from torch import Generator, Tensor
from torch.nn import functional as F

TRIES = 10


def random_boxes(
    images: Tensor, area: tuple[float, float], ratio: tuple[float, float], generator: Generator | None = None
) -> Tensor:
    """Boxes `(B, 4)` of whole pixels: top, left, height, width.

    The area is a uniform share of the image's, width / height log-uniform. Of ten draws the first that fits counts;
    the whole image stands in where none does.
    """
    height, width = images.shape[2:]
    device = images.device if generator is None else generator.device
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


def _sampled(starts: Tensor, lengths: Tensor, size: int) -> Tensor:
    """Where the `size` pixels of a stretched line `(B, size)` lie in the image; never outside their crop."""
    places = (torch.arange(size, device=starts.device, dtype=starts.dtype) + 0.5) / size
    inside = torch.minimum((places * lengths[:, None] - 0.5).clamp(min=0), lengths[:, None] - 1)
    return starts[:, None] + inside
