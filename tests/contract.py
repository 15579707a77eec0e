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


class Counter(nn.Module):
    """How many steps were taken since the beginning."""

    steps: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("steps", torch.zeros(()))


@dataclass(frozen=True, kw_only=True)
class RestoringToy(ncttt.Method):
    """Entropy whose weights are drawn back to the source's after each step, and which begins again after some."""

    name: ClassVar[str] = "restoring"
    learns: ClassVar[bool] = True
    steps: int = 1
    lr: float = 1e-2
    norm: str = "batch"
    back: float = 0.25
    after: int = 1000

    def parameters(self, model: ncttt.Branched) -> dict[str, nn.Parameter]:
        return model.norm_parameters()

    def memory(self, model: ncttt.Branched) -> Counter:
        return Counter()

    def adaptation_loss(self, model: ncttt.Branched, images: Tensor) -> Objective:
        logits = model(images)
        return Objective(torch.special.entr(logits.softmax(1)).sum(1).mean(), logits=logits)

    def after_step(self, model: ncttt.Branched) -> None:
        moved = self.parameters(model)
        for name, value in model.source_parameters().items():
            moved[name].lerp_(value, self.back)
        model.memory.steps += 1

    def forgets(self, model: ncttt.Branched) -> bool:
        return bool(model.memory.steps >= self.after)


@dataclass(frozen=True, kw_only=True)
class FactToy(ncttt.Method):
    """Adds to the logits what it has measured on source images; trains nothing."""

    name: ClassVar[str] = "fact"
    has_branch: ClassVar[bool] = True
    trains: ClassVar[Any] = "nothing"
    needs: ClassVar[str] = "mean logits"

    def build_branch(self, model: ncttt.Branched, features: Any, logits: Tensor) -> nn.Module:
        branch = nn.Module()
        branch.register_buffer("mean_logits", torch.zeros(logits.shape[1]))
        return branch

    def calibrate(self, model: ncttt.Branched, batches: Any) -> None:
        with torch.no_grad():
            parts = [batch if isinstance(batch, Tensor) else batch[0] for batch in batches]
            model.branch.mean_logits.copy_(torch.cat([model(part) for part in parts]).mean(0))

    def predict(self, model: ncttt.Branched, images: Tensor) -> Tensor:
        return model(images) - model.branch.mean_logits
