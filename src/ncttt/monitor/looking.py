"""One look at a batch: a forward pass with the source's statistics, and the numbers that drift shows in.

Nothing of an image's numbers depends on the rest of its batch. For each BatchNorm layer the distance of an image is

    log( mean over channels of ((m - mean) / std)^2  +  mean over channels of log(v / var)^2 ),

with m and v the mean and variance of the layer's input over the image's positions, mean and var the running ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from ncttt.base.errors import InputError
from ncttt.base.seeding import seeded_alone
from ncttt.model.branched import Branched
from ncttt.model.modes import evaluating
from ncttt.model.norm import statistics


class Look(NamedTuple):
    """What the model shows of a batch: logits `(B, classes)`, distances `(B,)` by layer, the branch's score `(B,)`."""

    logits: Tensor
    distances: dict[str, Tensor]
    score: Tensor | None


@torch.no_grad()
def look_at(model: Branched, images: Tensor) -> Look:
    """Look at images `(B, C, H, W)` by one pass; the model, its hooks included, is then as it was."""
    with (
        seeded_alone(0, images.device),
        evaluating(model),
        statistics(model.batch_norms(), "source"),
        _distances(model.classifier, len(images)) as distances,
    ):
        if model.branch is None:
            return Look(_checked(model(images)), distances, None)
        logits, features = model.forward_with_features(images)
        return Look(_checked(logits), distances, model.method.score(model, features, logits))


def doubt_of(logits: Tensor) -> Tensor:
    """Log-odds against the predicted class `(B,)`: the confidence on a scale that does not end at 1.

    >>> doubt_of(torch.tensor([[0.0, 0.0], [0.0, 100.0]]))
    tensor([   0., -100.])
    """
    top, index = logits.max(1)
    others = logits.scatter(1, index[:, None], -torch.inf)
    return others.logsumexp(1) - top


@contextmanager
def _distances(classifier: nn.Module, images: int) -> Iterator[dict[str, Tensor]]:
    """A dict that a pass inside the `with` block fills, in the order in which the layers run."""
    found: dict[str, Tensor] = {}

    def reading(name: str):
        def hook(layer: nn.Module, inputs: tuple[Tensor, ...]) -> None:
            # A layer that is used twice is read where it runs first; one that sees no images has nothing to tell.
            if name not in found and len(inputs[0]) == images:
                assert isinstance(layer, _BatchNorm)
                found[name] = distance_of(layer, inputs[0])

        return hook

    named = [(n, m) for n, m in classifier.named_modules() if isinstance(m, _BatchNorm) and m.running_mean is not None]
    handles = [module.register_forward_pre_hook(reading(name)) for name, module in named]
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()


def distance_of(layer: _BatchNorm, features: Tensor) -> Tensor:
    """Distance `(B,)` of each image's moments at a BatchNorm layer from the layer's running moments."""
    assert layer.running_mean is not None
    assert layer.running_var is not None
    positions = features.float().flatten(2) if features.ndim > 2 else features.float().unsqueeze(2)
    source = layer.running_var.float() + layer.eps
    mean = positions.mean(2)
    distance = ((mean - layer.running_mean).square() / source).mean(1)
    if positions.shape[2] > 1:
        variance = (positions - mean.unsqueeze(2)).square().mean(2)
        distance = distance + ((variance + layer.eps) / source).log().square().mean(1)
    return distance.clamp_min(1e-12).log()


def _checked(logits: Tensor) -> Tensor:
    if logits.shape[1] < 2:
        raise InputError(f"a monitor needs a classifier of at least two classes; found logits {tuple(logits.shape)}")
    return logits
