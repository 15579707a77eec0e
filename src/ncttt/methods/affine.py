"""What the entropy methods of streams share: scale and shift of all normalisation layers move, by a step a batch."""

from dataclasses import dataclass
from typing import ClassVar, get_args

from torch import Tensor, nn

from ncttt.base.errors import InputError
from ncttt.methods.base import Method, Objective
from ncttt.methods.shared import WITHOUT_NORM
from ncttt.methods.tent import Returns
from ncttt.model.branched import Branched
from ncttt.model.norm import Policy


@dataclass(frozen=True, kw_only=True)
class AffineMethod(Method):
    """Meant for a stream (`protocol="online"`): one step a batch, whose prediction is that of the gradient pass.

    `returns`: the logits from `before` the last step, as the authors of these methods do, or those `after` it, which
    costs another forward.
    """

    learns: ClassVar[bool] = True

    steps: int = 1
    lr: float = 1e-3
    norm: Policy | tuple[Policy, Policy] = "batch"
    returns: Returns = "before"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.returns not in get_args(Returns):
            raise InputError(f"returns must be one of {', '.join(get_args(Returns))}; found {self.returns!r}")

    def parameters(self, model: Branched) -> dict[str, nn.Parameter]:
        return affine_parameters(model, self.title)

    def objective(self, loss: Tensor | None, logits: Tensor) -> Objective:
        """What a step lowers, with the logits of the same pass where they are the prediction."""
        return Objective(loss, logits=logits.detach()) if self.returns == "before" else Objective(loss)


def affine_parameters(model: Branched, title: str) -> dict[str, nn.Parameter]:
    """Scale and shift of all normalisation layers, by name, for the method of that title; an error if none is there."""
    moved = model.norm_parameters()
    if not moved:
        network = type(model.classifier).__name__
        raise InputError(
            f"{title} moves scale and shift of normalisation layers; found none in {network}: {WITHOUT_NORM}"
        )
    return moved
