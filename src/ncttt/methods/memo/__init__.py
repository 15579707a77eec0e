"""MEMO: one image, many augmentations of it, and a step that makes the mean prediction for them certain.

With p_v the softmax for view v of an image, the loss is the entropy of mean_v p_v, so that the views must agree and be
certain; of several images it is the mean. Then the image itself is predicted, and all is forgotten.
"""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from ncttt.methods.base import Method, Objective
from ncttt.methods.memo.augmix import augmix
from ncttt.methods.shared import check_whole, marginal_entropies, need_pixels
from ncttt.model.branched import Branched
from ncttt.model.norm import Policy, blend

PRIOR = blend(1 / 17)  # of 16 source images, against the one at hand


@dataclass(frozen=True, kw_only=True)
class MEMO(Method):
    """Marginal entropy over augmentations, by all weights; meant for single images, each adapted to on its own.

    `views`: augmentations of an image. Statistics are the source's, which count as 16 images, and the batch's, as one.
    """

    name: ClassVar[str] = "memo"
    title: ClassVar[str] = "MEMO"
    place: ClassVar[float] = 38
    learns: ClassVar[bool] = True

    steps: int = 1
    lr: float = 5e-3
    optimizer: str = "sgd"
    norm: Policy | tuple[Policy, Policy] = PRIOR
    views: int = 32

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole(self, views=1)

    def parameters(self, model: Branched) -> dict[str, nn.Parameter]:
        return {name: p for name, p in model.classifier.named_parameters() if p.is_floating_point()}

    def adaptation_loss(self, model: Branched, images: Tensor) -> Objective:
        need_pixels(model, images, "the augmentations of MEMO")
        logits = model(augmix(images.repeat_interleave(self.views, 0)))
        return Objective(marginal_entropies(logits.unflatten(0, (-1, self.views))).mean())
