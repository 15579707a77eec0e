"""What only our own tests of the contract need; its rules are in `ncttt.testing.contract`."""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

import ncttt
from ncttt.methods import Objective, Prediction
from ncttt.model import penultimate_features


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


class Prototypes(nn.Module):
    """Sums of the features that were taken for each class, and how many there were."""

    sums: Tensor
    counts: Tensor

    def __init__(self, classes: int, features: int):
        super().__init__()
        self.register_buffer("sums", torch.zeros(classes, features))
        self.register_buffer("counts", torch.zeros(classes))


@dataclass(frozen=True, kw_only=True)
class PrototypeToy(ncttt.Method):
    """A small relative of T3A: classes are the mean features of what was taken for them; nothing has a gradient."""

    name: ClassVar[str] = "prototypes"
    weight: float = 4.0

    def memory(self, model: ncttt.Branched) -> Prototypes:
        with torch.no_grad():
            logits, features = penultimate_features(model, torch.zeros(2, *model.input_shape))
        return Prototypes(logits.shape[1], features.shape[1])

    def predict(self, model: ncttt.Branched, images: Tensor) -> Prediction:
        logits, features = penultimate_features(model, images)
        features = nn.functional.normalize(features, dim=1)
        means = nn.functional.normalize(model.memory.sums, dim=1)
        return Prediction(logits + self.weight * features @ means.T, seen=(logits, features))

    def remember(self, model: ncttt.Branched, images: Tensor, prediction: Prediction) -> None:
        logits, features = prediction.seen
        model.memory.sums.index_add_(0, logits.argmax(1), features)
        model.memory.counts += logits.argmax(1).bincount(minlength=logits.shape[1])
