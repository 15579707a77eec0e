"""Random views of images for contrastive learning, a batch at a time and on the batch's device.

A view is a crop of random area and shape scaled to the old size, mirrored or not, with other brightness, contrast,
saturation and hue, sometimes grey. Every image has random numbers of its own; images are float `(B, C, H, W)` in
[0, 1], before and after. The defaults are SimCLR's for 32-pixel images.
"""

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from ncttt.base.errors import InputError
from ncttt.methods.ttt_plus.colours import brighten, contrast, grey, saturate, turn_hue
from ncttt.methods.ttt_plus.crops import random_boxes, resized_crops

COLOURS = {"brightness": brighten, "contrast": contrast, "saturation": saturate, "hue": turn_hue}
NEED_COLOUR = ("saturation", "hue")


@dataclass(frozen=True, kw_only=True)
class Views:
    """How views are made: ranges of crops, strengths of colour changes, and how often each happens.

    >>> Views()(torch.rand(8, 3, 32, 32)).shape
    torch.Size([8, 3, 32, 32])
    """

    area: tuple[float, float] = (0.2, 1.0)
    ratio: tuple[float, float] = (3 / 4, 4 / 3)
    brightness: float = 0.4
    contrast: float = 0.4
    saturation: float = 0.4
    hue: float = 0.1
    jittered: float = 0.8
    greyed: float = 0.2
    flipped: float = 0.5

    def __call__(self, images: Tensor, generator: Generator | None = None) -> Tensor:
        """One view of each image."""
        if images.ndim != 4 or not images.is_floating_point():
            raise InputError(f"views are made of float images (B, C, H, W); found {tuple(images.shape)} {images.dtype}")
        boxes = random_boxes(images, self.area, self.ratio, generator)
        views = resized_crops(images, boxes, self._chosen(images, self.flipped, generator))
        jittered = self._jittered(views, generator)
        views = torch.where(_spread(self._chosen(images, self.jittered, generator)), jittered, views)
        if images.shape[1] == 3:
            views = torch.where(_spread(self._chosen(images, self.greyed, generator)), grey(views), views)
        if images.is_contiguous(memory_format=torch.channels_last):
            views = views.contiguous(memory_format=torch.channels_last)
        return views

    def _jittered(self, views: Tensor, generator: Generator | None) -> Tensor:
        """All colour changes, in an order that is drawn once for the batch."""
        names = list(COLOURS)
        device = "cpu" if generator is None else generator.device  # the order is needed here, not on a GPU
        for number in torch.randperm(len(names), generator=generator, device=device).tolist():
            name, strength = names[number], getattr(self, names[number])
            amounts = strength * (2 * _uniform(views, generator) - 1)
            if strength and (views.shape[1] == 3 or name not in NEED_COLOUR):
                views = COLOURS[name](views, amounts if name == "hue" else 1 + amounts)
        return views

    def _chosen(self, images: Tensor, probability: float, generator: Generator | None) -> Tensor:
        return _uniform(images, generator) < probability


def two_views(images: Tensor, generator: Generator | None = None) -> Tensor:
    """Two views of each image, `(2 * B, C, H, W)`: the first of all, then the second of all.

    >>> two_views(torch.rand(4, 3, 32, 32)).shape
    torch.Size([8, 3, 32, 32])
    """
    doubled = torch.cat([images, images])
    return Views()(doubled, generator)


def _uniform(images: Tensor, generator: Generator | None) -> Tensor:
    device = images.device if generator is None else generator.device
    return torch.rand(len(images), generator=generator, device=device).to(images)


def _spread(values: Tensor) -> Tensor:
    return values.view(-1, 1, 1, 1)
