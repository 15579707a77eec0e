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
from ncttt.base.seeding import own_generator
from ncttt.methods.base import Method, Objective
from ncttt.methods.shared import moved_parameters, own_pass
from ncttt.methods.ttt.tail import copy_tail
from ncttt.model.branched import Branched, Features
from ncttt.model.features import pooled
from ncttt.model.norm import Policy

Head = Literal["auto", "tail", "pooled"]
Rotations = Literal["one", "all"]


class RotationBranch(nn.Module):
    """A body that makes a vector of the features, and a linear layer from it to the four rotations."""

    def __init__(self, body: nn.Module, features: Tensor):
        super().__init__()
        self.body = body
        with torch.no_grad():
            width = body(features.clone()).shape[1]
        self.readout = nn.Linear(width, 4)

    def forward(self, features: Features) -> Tensor:
        """Logits `(B, 4)` of the rotations."""
        return self.readout(self.body(features))


class PooledBody(nn.Module):
    """Features averaged over positions, then one hidden layer as wide as they are."""

    def __init__(self, features: Tensor):
        super().__init__()
        width = pooled(features).shape[1]
        self.hidden = nn.Linear(width, width)

    def forward(self, features: Tensor) -> Tensor:
        return self.hidden(pooled(features)).relu()


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

    def warnings(self, health: Mapping[str, float]) -> list[str]:
        accuracy = health["rotation_accuracy"]
        if accuracy >= 0.3:
            return []
        return [f"the branch recognises {accuracy:.0%} of the rotations, and a guess 25%; train longer, or tap earlier"]

    def parameters(self, model: Branched) -> dict[str, nn.Parameter]:
        moved = moved_parameters(model, self.moves)
        if self.moves_head and model.branch is not None:
            moved |= {f"(head) {name}": parameter for name, parameter in model.branch.named_parameters()}
        return moved


def rotate_all(images: Tensor) -> tuple[Tensor, Tensor]:
    """The batch in all four rotations `(4 * B, C, S, S)`, and the number of quarter turns of each image `(4 * B,)`.

    >>> rotated, turns = rotate_all(torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]]))
    >>> rotated[1, 0].tolist(), turns.tolist()
    ([[2.0, 4.0], [1.0, 3.0]], [0, 1, 2, 3])
    """
    rotated = torch.cat([torch.rot90(_square(images), turns, (2, 3)) for turns in range(4)])
    if images.is_contiguous(memory_format=torch.channels_last):
        rotated = rotated.contiguous(memory_format=torch.channels_last)
    return rotated, torch.arange(4, device=images.device).repeat_interleave(len(images))


def rotate_each(images: Tensor) -> tuple[Tensor, Tensor]:
    """Every image in one random rotation `(B, C, S, S)`, and its number of quarter turns `(B,)`."""
    turns = torch.randint(4, (len(images),), device=images.device, generator=own_generator(images.device))
    chosen = turns * len(images) + torch.arange(len(images), device=images.device)
    return rotate_all(images)[0][chosen], turns


def _square(images: Tensor) -> Tensor:
    if images.shape[2] != images.shape[3]:
        height, width = images.shape[2:]
        raise InputError(f"TTT turns images by 90 degrees, so they must be square; found {height}x{width}")
    return images


def _branch(model: Branched) -> RotationBranch:
    assert isinstance(model.branch, RotationBranch)
    return model.branch
