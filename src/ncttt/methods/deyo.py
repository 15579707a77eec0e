"""DeYO: entropy of images that are certain, and certain because of shapes: shuffled patches take the certainty away.

With H the entropy of an image's softmax p, k its predicted class, p' the softmax of the same image with its patches
shuffled, and drop = p_k - p'_k, an image counts if H < margin * ln C and drop > least_drop. The loss is the mean over
these of (exp(weight_margin * ln C - H) + exp(drop)) H, the weight without a gradient.
"""

from dataclasses import dataclass
from math import log
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from ncttt.base.errors import InputError
from ncttt.base.seeding import own_generator
from ncttt.methods.affine import AffineMethod
from ncttt.methods.base import Objective
from ncttt.methods.shared import check_numbers, check_whole, entropies
from ncttt.model.branched import Branched
from ncttt.model.norm import aside


@dataclass(frozen=True, kw_only=True)
class DeYO(AffineMethod):
    """Entropy of certain images whose prediction depends on the order of their parts.

    `margin`: the entropy, as a share of ln C, below which an image counts; `weight_margin`: that at which its weight is
    one. `least_drop`: how much probability the predicted class must lose when `patches` x `patches` are shuffled.
    """

    name: ClassVar[str] = "deyo"
    title: ClassVar[str] = "DeYO"
    place: ClassVar[float] = 45

    optimizer: str = "momentum"
    margin: float = 0.5
    weight_margin: float = 0.4
    least_drop: float = 0.2
    patches: int = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        check_numbers(self, margin=0, weight_margin=0, least_drop=-1)
        check_whole(self, patches=1)

    def adaptation_loss(self, model: Branched, images: Tensor) -> Objective:
        logits = model(images)
        highest, entropy = log(logits.shape[1]), entropies(logits)
        certain = (entropy.detach() < self.margin * highest).nonzero().flatten()
        if not len(certain):
            return self.objective(None, logits)
        drops = self._drops(model, images[certain], logits.detach()[certain])
        counts = drops > self.least_drop
        if not bool(counts.any()):
            return self.objective(None, logits)
        entropy, drops = entropy[certain][counts], drops[counts]
        weights = (self.weight_margin * highest - entropy.detach()).exp() + drops.exp()
        return self.objective((weights * entropy).mean(), logits)

    @torch.no_grad()
    def _drops(self, model: Branched, images: Tensor, logits: Tensor) -> Tensor:
        """How much probability the predicted classes lose when the patches are shuffled, `(B,)`."""
        predicted = logits.argmax(1, keepdim=True)
        with aside(model.batch_norms()):
            shuffled = model(shuffled_patches(images, self.patches))
        return (logits.softmax(1) - shuffled.softmax(1)).gather(1, predicted).flatten()


def shuffled_patches(images: Tensor, patches: int) -> Tensor:
    """Images `(B, C, H, W)` cut into patches x patches, which come in a random order, another one for each image.

    Images whose sides are no multiples are scaled to such sides and back.

    >>> shuffled_patches(torch.rand(8, 3, 30, 32), 4).shape
    torch.Size([8, 3, 30, 32])
    """
    count, channels, *sides = images.shape
    height, width = (side // patches for side in sides)
    if not height or not width:
        raise InputError(
            f"DeYO shuffles patches, and images of {sides[0]}x{sides[1]} cannot be cut into {patches}x{patches} of them"
        )
    fits = [height * patches, width * patches] == sides
    fitting = images if fits else F.interpolate(images, (height * patches, width * patches), mode="bilinear")
    grid = fitting.reshape(count, channels, patches, height, patches, width).permute(0, 2, 4, 1, 3, 5).flatten(1, 2)
    draws = torch.rand(count, patches**2, generator=own_generator(images.device), device=images.device)
    mixed = grid[torch.arange(count, device=images.device)[:, None], draws.argsort(1)]
    whole = mixed.unflatten(1, (patches, patches)).permute(0, 3, 1, 4, 2, 5).reshape(fitting.shape)
    return whole if fits else F.interpolate(whole, sides, mode="bilinear")
