"""TENT: lower the entropy of the predictions by the scale and shift of the BatchNorm layers, with batch statistics.

The loss is the mean over images of H = -sum_k p_k log p_k, where p is the softmax over classes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from ncttt.base.errors import InputError
from ncttt.methods.base import Method, Objective
from ncttt.methods.shared import WITHOUT_NORM, EntropyOf, check_choices, mean_entropy
from ncttt.model.branched import Branched
from ncttt.model.norm import Policy

Returns = Literal["after", "before"]


@dataclass(frozen=True, kw_only=True)
class Tent(Method):
    """Entropy minimisation; meant for a stream (`protocol="online"`), where the small steps add up.

    `returns`: the logits `after` the last step, or those from `before` it, of the pass that gave its gradient, which
    saves a forward. `moves`: scale and shift of `batch_norm` layers, or of every normalisation layer (`norm`), or a
    layer's name, for all parameters up to and including it: no longer TENT, but what tells the effect of a loss from
    that of what moves. `entropy_of`: the prediction for `each` of the copies, or the `mean` over those of an image.
    """

    name: ClassVar[str] = "tent"
    title: ClassVar[str] = "TENT"
    place: ClassVar[float] = 40
    learns: ClassVar[bool] = True
    added: ClassVar[Mapping[str, Any]] = {"entropy_of": "each"}

    steps: int = 1
    lr: float = 1e-3
    norm: Policy | tuple[Policy, Policy] = "batch"
    returns: Returns = "after"
    moves: str = "batch_norm"
    entropy_of: EntropyOf = "each"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choices(self, returns=get_args(Returns), entropy_of=get_args(EntropyOf))

    def parameters(self, model: Branched) -> dict[str, nn.Parameter]:
        if self.moves not in ("batch_norm", "norm"):
            return model.encoder_parameters(self.moves)
        moved = model.norm_parameters()
        if self.moves == "batch_norm":
            moved = {name: p for name, p in moved.items() if _is_batch_norm(model, name)}
        if not moved:
            kind = "BatchNorm" if self.moves == "batch_norm" else "normalisation"
            others = "Tent(moves='norm') also moves other normalisation layers"
            hint, network = others if model.norm_parameters() else WITHOUT_NORM, type(model.classifier).__name__
            raise InputError(f"TENT moves scale and shift of {kind} layers; found none in {network}: {hint}")
        return moved

    def adaptation_loss(self, model: Branched, images: Tensor) -> Objective:
        logits = model(images)
        loss = mean_entropy(logits, self.copies if self.entropy_of == "mean" else 1)
        return Objective(loss, logits=logits.detach()) if self.returns == "before" else Objective(loss)


def _is_batch_norm(model: Branched, parameter: str) -> bool:
    return isinstance(model.classifier.get_submodule(parameter.rpartition(".")[0]), _BatchNorm)
