"""Changes of colour on float images `(B, C, H, W)` in [0, 1], each image by an amount `(B,)` of its own."""

import torch
from torch import Tensor

WEIGHTS = (0.299, 0.587, 0.114)  # of red, green and blue in grey, as in Pillow


def grey(images: Tensor) -> Tensor:
    """Grey images with three equal channels; images of other than three channels stay as they are."""
    return _luminance(images).expand_as(images)


def brighten(images: Tensor, factors: Tensor) -> Tensor:
    """Multiply by a factor: 0 is black, 1 unchanged."""
    return (images * _spread(factors)).clamp(0, 1)


def contrast(images: Tensor, factors: Tensor) -> Tensor:
    """Blend with the mean grey of the image: 0 is flat, 1 unchanged."""
    return _blended(_luminance(images).mean((1, 2, 3), keepdim=True), images, factors)


def saturate(images: Tensor, factors: Tensor) -> Tensor:
    """Blend with the grey image: 0 is grey, 1 unchanged."""
    return _blended(_luminance(images), images, factors)


def turn_hue(images: Tensor, turns: Tensor) -> Tensor:
    """Turn the hue by a part of the colour circle: 0 and 1 are unchanged."""
    value, lowest = images.amax(1), images.amin(1)
    chroma = value - lowest
    red, green, blue = images.unbind(1)
    safe = torch.where(chroma > 0, chroma, 1)
    sixths = torch.where(
        value == red,
        (green - blue) / safe,
        torch.where(value == green, 2 + (blue - red) / safe, 4 + (red - green) / safe),
    )
    sixths = sixths + 6 * turns[:, None, None]
    # A channel is the value less the chroma, as far as its own hue is away: none within one sixth, all beyond two.
    offsets = torch.tensor([5, 3, 1], dtype=images.dtype, device=images.device).view(1, 3, 1, 1)
    away = torch.remainder(offsets + sixths[:, None], 6)
    return value[:, None] - chroma[:, None] * torch.minimum(away, 4 - away).clamp(0, 1)


def _luminance(images: Tensor) -> Tensor:
    if images.shape[1] != 3:
        return images
    weights = torch.tensor(WEIGHTS, dtype=images.dtype, device=images.device).view(1, 3, 1, 1)
    return (images * weights).sum(1, keepdim=True)


def _blended(other: Tensor, images: Tensor, factors: Tensor) -> Tensor:
    return torch.lerp(other.expand_as(images), images, _spread(factors)).clamp(0, 1)


def _spread(values: Tensor) -> Tensor:
    return values.view(-1, 1, 1, 1)
