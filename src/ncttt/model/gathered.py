"""Images of a stream that come in batches too small for a step, kept until they are enough."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ncttt.base.errors import InputError


class Gathered(nn.Module):
    """Images `(N, C, H, W)` that no step has learned from yet, and how many of them there are, fewer than N."""

    images: Tensor
    count: Tensor

    def __init__(self, size: int, shape: Sequence[int]):
        super().__init__()
        self.register_buffer("images", torch.zeros(size, *shape))
        self.register_buffer("count", torch.zeros((), dtype=torch.long))

    def group(self, images: Tensor) -> Tensor | None:
        """What to learn from when these come: themselves with those that wait, or None while all are too few."""
        check_same_shape("a group", self.images, images)
        waiting = int(self.count)
        if waiting + len(images) < len(self.images):
            return None
        return torch.cat([self.images[:waiting], images]) if waiting else images

    def keep(self, images: Tensor) -> None:
        """Let these wait, too, or nobody any more where there are enough to learn from, as `group` has done."""
        waiting = int(self.count)
        if waiting + len(images) < len(self.images):
            self.images[waiting : waiting + len(images)] = images
            self.count.add_(len(images))
        else:
            self.count.zero_()


def check_same_shape(what: str, held: Tensor, images: Tensor) -> None:
    """Raise an `InputError` for images of another shape than those that are held, whatever their number."""
    if images.shape[1:] != held.shape[1:]:
        expected, found = (tuple(each.shape[1:]) for each in (held, images))
        raise InputError(f"{what} holds images of shape {expected}, as the model was made for; found {found}")
