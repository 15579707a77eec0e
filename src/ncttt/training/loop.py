"""The training loop: cross-entropy plus the method's auxiliary loss."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from ncttt.branched import Branched
from ncttt.data import ImageSet, batches
from ncttt.errors import InputError
from ncttt.randomness import seeded

Augmentation = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Epoch:
    """Means over one epoch of training."""

    number: int
    cross_entropy: float
    auxiliary: float
    accuracy: float


def train(
    model: Branched,
    data: ImageSet,
    *,
    epochs: int = 10,
    batch_size: int = 128,
    lr: float = 0.1,
    branch_lr: float = 2e-3,
    weight_decay: float = 5e-4,
    auxiliary_weight: float | None = None,
    held_out: ImageSet | None = None,
    augment: Augmentation | None = None,
    seed: int = 0,
    report: Callable[[Epoch], None] | None = None,
) -> list[Epoch]:
    """Train classifier and branch jointly, in place, and calibrate the method on `held_out` source images.

    The classifier learns by SGD with a one-cycle schedule, the branch by AdamW. `auxiliary_weight` defaults to the
    method's own. `report` is called after every epoch.
    """
    _check_classes(model, data)
    steps = epochs * (len(data) // batch_size)
    if steps < 1:
        raise InputError(f"nothing to train: {epochs} epochs of {len(data)} images in batches of {batch_size}")
    weight = model.method.auxiliary_weight if auxiliary_weight is None else auxiliary_weight
    optimizers = _optimizers(model, lr, branch_lr, weight_decay)
    schedules = [torch.optim.lr_scheduler.LambdaLR(o, lambda step: one_cycle((step + 0.5) / steps)) for o in optimizers]
    history, device = [], model.mean.device
    with seeded(seed, device):
        for number in range(epochs):
            model.train()
            sums, count = torch.zeros(3, device=device), 0
            order = {"shuffle": True, "seed": seed, "epoch": number, "drop_last": True}
            for images, labels in batches(data, batch_size, **order, device=device):
                images = images if augment is None else augment(images)
                sums += _step(model, images, labels, weight, optimizers)
                count += 1
                for schedule in schedules:
                    schedule.step()
            history.append(Epoch(number + 1, *(sums / count).tolist()))
            if report is not None:
                report(history[-1])
    model.eval()
    if held_out is not None:
        model.method.calibrate(model, batches(held_out, batch_size, device=device))
    return history


def one_cycle(progress: float) -> float:
    """The learning rate as a share of its peak: up in a line for a fifth of the training, down along a cosine.

    >>> [round(one_cycle(t), 2) for t in (0, 0.1, 0.2, 0.6, 1)]
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    return progress / 0.2 if progress < 0.2 else 0.5 + 0.5 * math.cos(math.pi * (progress - 0.2) / 0.8)


def _step(
    model: Branched, images: Tensor, labels: Tensor, weight: float, optimizers: list[torch.optim.Optimizer]
) -> Tensor:
    """One step on one batch; returns cross-entropy, auxiliary loss and accuracy."""
    logits, features = model.forward_with_features(images)
    cross_entropy = F.cross_entropy(logits, labels)
    auxiliary = model.method.training_loss(model, images, features, logits)
    auxiliary = torch.zeros_like(cross_entropy) if auxiliary is None else auxiliary
    for optimizer in optimizers:
        optimizer.zero_grad(set_to_none=True)
    (cross_entropy + weight * auxiliary).backward()
    for optimizer in optimizers:
        optimizer.step()
    accuracy = (logits.argmax(1) == labels).float().mean()
    return torch.stack([cross_entropy, auxiliary, accuracy]).detach()


def _optimizers(model: Branched, lr: float, branch_lr: float, weight_decay: float) -> list[torch.optim.Optimizer]:
    optimizers: list[torch.optim.Optimizer] = [
        torch.optim.SGD(model.classifier.parameters(), lr=lr, momentum=0.9, weight_decay=weight_decay, nesterov=True)
    ]
    if model.branch is not None:
        optimizers.append(torch.optim.AdamW(model.branch.parameters(), lr=branch_lr))
    return optimizers


def _check_classes(model: Branched, data: ImageSet) -> None:
    if not isinstance(model, Branched) or model.input_shape is None:
        raise InputError(f"train takes a model made by ncttt.attach; found a {type(model).__name__}")
    if not isinstance(data, ImageSet):
        raise InputError(f"train takes an ImageSet(images, labels, classes); found a {type(data).__name__}")
    with torch.no_grad():
        classes = model.eval()(torch.zeros(1, *model.input_shape).to(model.mean)).shape[1]
    if classes != len(data.classes):
        raise InputError(f"the classifier has {classes} classes, but {data.name} has {len(data.classes)}")
