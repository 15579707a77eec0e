"""Augmentation, a batch at a time and on the batch's device: random crops, flips and cuts."""

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from ncttt.base.errors import InputError


def pad_crop_flip(images: Tensor, padding: int = 4, generator: Generator | None = None) -> Tensor:
    """Pad with black, cut a random window of the old size, mirror half of the images: (B, C, H, W) -> the same.

    >>> pad_crop_flip(torch.rand(8, 3, 32, 32)).shape
    torch.Size([8, 3, 32, 32])
    """
    height, width = _sides(images)
    return random_crop_flip(F.pad(images, [padding] * 4), height, width, generator)


def pad_crop_flip_cutout(images: Tensor, side: int = 8, generator: Generator | None = None) -> Tensor:
    """`pad_crop_flip`, then a square of `side` pixels, whose middle is anywhere, greyed in every image.

    >>> pad_crop_flip_cutout(torch.rand(8, 3, 32, 32)).shape
    torch.Size([8, 3, 32, 32])
    """
    images = pad_crop_flip(images, generator=generator)
    inside = []
    for length in _sides(images):
        middles = _integers(length, len(images), images, generator)
        inside.append(torch.arange(length, device=images.device) - middles[:, None] + side // 2)
    rows, columns = ((offset >= 0) & (offset < side) for offset in inside)
    # In place, on the images that were just made: a new tensor would not be channels_last.
    return images.masked_fill_((rows[:, :, None] & columns[:, None, :])[:, None], 0.5)


def resize_crop_flip(images: Tensor, size: int = 224, resize: int = 256, generator: Generator | None = None) -> Tensor:
    """Scale the shorter side to `resize`, cut a random `size` x `size` window, mirror half: (B, C, size, size).

    >>> resize_crop_flip(torch.rand(2, 3, 40, 60), size=24, resize=28).shape
    torch.Size([2, 3, 24, 24])
    """
    height, width = _sides(images)
    if resize != min(height, width):
        scale = resize / min(height, width)
        target = [max(resize, round(height * scale)), max(resize, round(width * scale))]
        images = F.interpolate(images, target, mode="bilinear", antialias=True, align_corners=False)
    return random_crop_flip(images, size, size, generator)


def random_crop_flip(images: Tensor, height: int, width: int, generator: Generator | None = None) -> Tensor:
    """A random window of every image, mirrored with probability 1/2: (B, C, H, W) -> (B, C, height, width).

    >>> random_crop_flip(torch.rand(2, 3, 9, 9), 8, 8).shape
    torch.Size([2, 3, 8, 8])
    """
    count, (full_height, full_width) = len(images), _sides(images)
    if height > full_height or width > full_width:
        raise InputError(f"cannot cut {height}x{width} out of images of {full_height}x{full_width}")
    tops = _integers(full_height - height + 1, count, images, generator)
    lefts = _integers(full_width - width + 1, count, images, generator)
    flips = _integers(2, count, images, generator).bool()
    rows = tops[:, None] + torch.arange(height, device=images.device)
    columns = lefts[:, None] + torch.arange(width, device=images.device)
    columns = torch.where(flips[:, None], columns.flip(1), columns)
    image = torch.arange(count, device=images.device)[:, None, None]
    # One gather over NHWC does crop and flip together and leaves the result channels_last.
    return images.permute(0, 2, 3, 1)[image, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)


def _sides(images: Tensor) -> tuple[int, int]:
    if images.ndim != 4:
        raise InputError(f"images to augment have shape {tuple(images.shape)}; expected (B, C, H, W)")
    return images.shape[2], images.shape[3]


def _integers(limit: int, count: int, images: Tensor, generator: Generator | None) -> Tensor:
    device = images.device if generator is None else generator.device
    return torch.randint(limit, (count,), generator=generator, device=device).to(images.device)
