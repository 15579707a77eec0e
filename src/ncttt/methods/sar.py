"""SAR: entropy of certain images at the worst point near the weights, so that the minimum is flat; and a recovery.

With E = margin * ln C, g the gradient of the mean entropy of the images with H < E, and theta' = theta + rho g / |g|,
the loss is the mean entropy at theta' of those of them that are below E there, too; its gradient at theta' moves theta.
A moving mean of that loss that falls below recovery * ln C means collapse, and sends the stream back to its beginning.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import ClassVar

import torch
from torch import Tensor, nn

from ncttt.methods.affine import AffineMethod
from ncttt.methods.base import Objective
from ncttt.methods.shared import check_numbers, entropies
from ncttt.model.branched import NORMALISATIONS, Branched
from ncttt.model.norm import aside

UNKNOWN = -1.0  # before the first loss


class MeanLoss(nn.Module):
    """The moving mean of the loss, as a share of ln C."""

    mean: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(UNKNOWN))

    def move(self, share: Tensor) -> None:
        """Towards a loss by a tenth, or all the way if it is the first."""
        self.mean.copy_(torch.where(self.mean < 0, share, 0.9 * self.mean + 0.1 * share))


@dataclass(frozen=True, kw_only=True)
class SAR(AffineMethod):
    """Sharpness-aware entropy minimisation of certain images, all normalisation layers but those of the last stage.

    `margin` and `recovery` are shares of ln C: the entropy below which an image counts, and the mean loss below which
    the stream begins again. `rho`: how far away the loss is taken.
    """

    name: ClassVar[str] = "sar"
    title: ClassVar[str] = "SAR"
    place: ClassVar[float] = 44

    lr: float = 1e-2
    optimizer: str = "momentum"
    margin: float = 0.4
    rho: float = 0.05
    recovery: float = 0.029  # 0.2 / ln 1000

    def __post_init__(self) -> None:
        super().__post_init__()
        check_numbers(self, margin=0, rho=0, recovery=0)

    def parameters(self, model: Branched) -> dict[str, nn.Parameter]:
        moved, early = super().parameters(model), norms_before_last_stage(model.classifier)
        return {name: p for name, p in moved.items() if name.rpartition(".")[0] in early} or moved

    def memory(self, model: Branched) -> MeanLoss:
        return MeanLoss()

    def adaptation_loss(self, model: Branched, images: Tensor) -> Objective:
        logits = model(images)
        highest, entropy = log(logits.shape[1]), entropies(logits)
        certain = entropy.detach() < self.margin * highest
        if not bool(certain.any()):
            return self.objective(None, logits)
        away = self._moved_away(model, entropy[certain].mean())
        with aside(model.batch_norms()):
            entropy = entropies(torch.func.functional_call(model, away, (images,)))[certain]
        still = entropy.detach() < self.margin * highest
        if not bool(still.any()):
            return self.objective(None, logits)
        loss = entropy[still].mean()
        _memory(model).move(loss.detach() / highest)
        return self.objective(loss, logits)

    def forgets(self, model: Branched) -> bool:
        return 0 <= _memory(model).mean.item() < self.recovery

    def _moved_away(self, model: Branched, loss: Tensor) -> dict[str, Tensor]:
        """What moves, `rho` further along the gradient, so that the gradient there is one for what moves."""
        moved = {f"classifier.{name}": parameter for name, parameter in self.parameters(model).items()}
        gradients = torch.autograd.grad(loss, list(moved.values()), materialize_grads=True)
        length = torch.stack([gradient.norm() for gradient in gradients]).norm() + 1e-12
        return {name: p + self.rho / length * g for (name, p), g in zip(moved.items(), gradients, strict=True)}


def norms_before_last_stage(network: nn.Module) -> set[str]:
    """The names of normalisation layers before the last stage, or of all where there is no stage before it.

    Stages are the parts of a network that hold several such layers; of many alike, such as the blocks of a
    transformer, the last quarter is the last stage. The order is that in which the network defines them.

    >>> from ncttt import models
    >>> sorted({name.partition(".")[0] for name in norms_before_last_stage(models.resnet18())})
    ['bn1', 'layer1', 'layer2', 'layer3']
    """
    names = [name for name, part in network.named_modules() if isinstance(part, NORMALISATIONS)]
    return set(names[: names.index(_beginning_of_last_stage(names))] or names) if names else set()


def _beginning_of_last_stage(names: Sequence[str], inside: str = "") -> str:
    parts: dict[str, list[str]] = {}
    for name in names:
        parts.setdefault(name.removeprefix(inside).partition(".")[0], []).append(name)
    stages = [part for part, own in parts.items() if len(own) > 1]
    if stages and 2 * len(parts[stages[-1]]) > len(names):  # it holds most of them, so its parts are the stages
        return _beginning_of_last_stage(parts[stages[-1]], f"{inside}{stages[-1]}.")
    stages = stages or list(parts)
    return parts[stages[-max(1, round(len(stages) / 4))]][0]


def _memory(model: Branched) -> MeanLoss:
    assert isinstance(model.memory, MeanLoss)
    return model.memory
