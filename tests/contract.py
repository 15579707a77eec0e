"""What only our own tests of the contract need; its rules are in `ncttt.testing.contract`."""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

import ncttt
from ncttt.methods import Objective


@dataclass(frozen=True, kw_only=True)
class RandomToy(ncttt.Method):
    """A method that draws random numbers, moves a buffer and learns: what the real ones do between them."""

    name: ClassVar[str] = "toy"
    has_branch: ClassVar[bool] = True
    learns: ClassVar[bool] = True
    steps: int = 2
    lr: float = 1e-3

    def build_branch(self, model: ncttt.Branched, features: Any, logits: Tensor) -> nn.Module:
        branch = nn.Module()
        branch.register_buffer("seen", torch.zeros(1))
        return branch

    def parameters(self, model: ncttt.Branched) -> dict[str, nn.Parameter]:
        return model.encoder_parameters()

    def buffers(self, model: ncttt.Branched) -> dict[str, Tensor]:
        return dict(model.branch.named_buffers())

    def adaptation_loss(self, model: ncttt.Branched, images: Tensor) -> Objective:
        features = model.features(images)
        model.branch.seen += len(images)
        return Objective(((1 + 0.1 * torch.rand_like(features)) * features).square().mean())

    def predict(self, model: ncttt.Branched, images: Tensor) -> Tensor:
        return model(images) + 1e-3 * model.branch.seen
