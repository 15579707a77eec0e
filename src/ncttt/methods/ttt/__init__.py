"""TTT: a second head predicts by how many quarter turns an image was rotated; at test time the encoder learns that.

The loss is the cross-entropy of the four rotations 0, 90, 180 and 270 degrees, counter-clockwise.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ncttt.base.errors import InputError
from ncttt.methods.base import Method, Objective
from ncttt.methods.shared.moving import moved_parameters
from ncttt.methods.shared.passes import own_pass
from ncttt.methods.ttt.rotation import PooledBody, RotationBranch, rotate_all, rotate_each
from ncttt.methods.ttt.tail import copy_tail
from ncttt.model.branched import Branched, Features
from ncttt.model.norm import Policy

Head = Literal["auto", "tail", "pooled"]
Rotations = Literal["one", "all"]


@dataclass(frozen=True, kw_only=True)
class TTT(Method):
    """Rotation prediction as the auxiliary task.

    `head`: a copy of what follows the tap (`tail`), averaged features and a hidden layer (`pooled`), or the first
    where the classifier allows it (`auto`). `rotations` of each image in training: `one` at random or `all` four; at
    test time it is all four. `moves`: `encoder`, `norm` or a layer's name; with `moves_head` the head learns, too.
    """

    name: ClassVar[str] = "ttt"
    title: ClassVar[str] = "TTT"
    place: ClassVar[float] = 50
    has_branch: ClassVar[bool] = True
    learns: ClassVar[bool] = True
    branch_settings = ("head",)

    steps: int = 10
    lr: float = 1e-3
    optimizer: str = "sgd"
    norm: Policy | tuple[Policy, Policy] = "batch"
    head: Head = "auto"
    rotations: Rotations = "one"
    moves: str = "encoder"
    moves_head: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        for field, choices in {"head": get_args(Head), "rotations": get_args(Rotations)}.items():
            if getattr(self, field) not in choices:
                raise InputError(f"{field} must be one of {', '.join(choices)}; found {getattr(self, field)!r}")

    def build_branch(self, model: Branched, features: Features, logits: Tensor) -> RotationBranch:
        if not isinstance(features, Tensor):
            raise InputError(f"the rotation head of TTT follows one layer; found {len(features)}: {model.layers}")
        tail = None
        if self.head != "pooled":
            tail = copy_tail(model.classifier, model.layers[0], features, logits)
        if tail is None and self.head == "tail":
            raise InputError(
                f"head='tail' needs a forward of {type(model.classifier).__name__} that can be traced and leads "
                f"through {model.layers[0]!r} alone; found one that does not; use head='auto' or head='pooled'"
            )
        return RotationBranch(PooledBody(features) if tail is None else tail.eval(), features)

    def training_loss(self, model: Branched, images: Tensor, features: Features, logits: Tensor) -> Tensor:
        """Cross-entropy of rotated images, in a pass of their own: all of them share one set of batch statistics."""
        rotated, turns = rotate_each(images) if self.rotations == "one" else rotate_all(images)
        with own_pass(model):
            return F.cross_entropy(_branch(model)(model.features(rotated)), turns)

    def adaptation_loss(self, model: Branched, images: Tensor) -> Objective:
        rotated, turns = rotate_all(images)
        return Objective(F.cross_entropy(_branch(model)(model.features(rotated)), turns))

    @torch.no_grad()
    def health(self, model: Branched, images: Tensor, features: Features, logits: Tensor) -> dict[str, Tensor]:
        """The share of all four rotations that are recognised; a guess has 0.25."""
        rotated, turns = rotate_all(images)
        with own_pass(model):
            guesses = _branch(model)(model.features(rotated)).argmax(1)
        return {"rotation_accuracy": (guesses == turns).float().mean()}

    def ailments(self, health: Mapping[str, float]) -> list[str]:
        accuracy = health["rotation_accuracy"]
        if accuracy >= 0.3:
            return []
        return [f"the branch recognises {accuracy:.0%} of the rotations, and a guess 25%; train longer, or tap earlier"]

    def parameters(self, model: Branched) -> dict[str, nn.Parameter]:
        moved = moved_parameters(model, self.moves)
        if self.moves_head and model.branch is not None:
            moved |= {f"(head) {name}": parameter for name, parameter in model.branch.named_parameters()}
        return moved


def _branch(model: Branched) -> RotationBranch:
    assert isinstance(model.branch, RotationBranch)
    return model.branch
