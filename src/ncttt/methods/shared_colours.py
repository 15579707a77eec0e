"""Changes of the colours of images, which all random views share; a batch at a time, on the batch's device.

Images are float `(B, C, H, W)` in [0, 1], before and after. Every image has a number of its own.
"""

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from ncttt.base.seeding import own_generator

GREY = (0.299, 0.587, 0.114)  # of red, green and blue in grey, as in Pillow


def grey(images: Tensor) -> Tensor:
    """Grey images with three equal channels; images of other than three channels stay as they are."""
    return _luminance(images).expand_as(images)


def brighten(images: Tensor, factors: Tensor) -> Tensor:
    """Multiply by a factor: 0 is black, 1 unchanged."""
    return (images * spread(factors)).clamp(0, 1)


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


def gamma(images: Tensor, powers: Tensor) -> Tensor:
    """Raise to a power: 1 is unchanged."""
    return images.clamp(0, 1).pow(spread(powers))


CHANGES = {"brightness": brighten, "contrast": contrast, "saturation": saturate, "hue": turn_hue, "gamma": gamma}
NEED_COLOUR = ("saturation", "hue")


@dataclass(frozen=True, kw_only=True)
class Colours:
    """Random colours: how far each change goes at most, to either side; one of strength 0 is not made.

    >>> Colours(hue=0.0).recoloured(torch.rand(8, 3, 32, 32)).shape
    torch.Size([8, 3, 32, 32])
    """

    brightness: float = 0.4
    contrast: float = 0.4
    saturation: float = 0.4
    hue: float = 0.1
    gamma: float = 0.0

    def recoloured(self, images: Tensor, generator: Generator | None = None) -> Tensor:
        """All changes, in an order that is drawn once for the batch."""
        names = [name for name in CHANGES if getattr(self, name)]
        device = "cpu" if generator is None else generator.device  # the order is needed here, not on a GPU
        source = generator or own_generator(device)
        for number in torch.randperm(len(names), generator=source, device=device).tolist():
            name = names[number]
            amounts = getattr(self, name) * (2 * uniform(images, generator) - 1)
            if images.shape[1] == 3 or name not in NEED_COLOUR:
                images = CHANGES[name](images, amounts if name == "hue" else 1 + amounts)
        return images


def uniform(images: Tensor, generator: Generator | None = None) -> Tensor:
    """A random number from 0 to 1 for each image `(B,)`, by the generator, or by that of the adaptation."""
    device = images.device if generator is None else generator.device
    generator = generator or own_generator(device)
    return torch.rand(len(images), generator=generator, device=device).to(images)


def spread(values: Tensor) -> Tensor:
    """Values `(B,)` in a shape that broadcasts over images."""
    return values.view(-1, 1, 1, 1)


def _luminance(images: Tensor) -> Tensor:
    if images.shape[1] != 3:
        return images
    weights = torch.tensor(GREY, dtype=images.dtype, device=images.device).view(1, 3, 1, 1)
    return (images * weights).sum(1, keepdim=True)


def _blended(other: Tensor, images: Tensor, factors: Tensor) -> Tensor:
    return torch.lerp(other.expand_as(images), images, spread(factors)).clamp(0, 1)
