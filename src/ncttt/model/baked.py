"""Baked: a classifier as it stood after adaptation, as a plain module without anything that adapts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy

import torch
from torch import Tensor, nn

from ncttt.base.errors import InputError
from ncttt.model.branched import Branched, per_channel
from ncttt.model.mirrors import mean_logits, mirror
from ncttt.model.norm import Policy, batch_share
from ncttt.model.taps import logits_of

Moments = dict[str, tuple[Tensor, Tensor]]


class Baked(nn.Module):
    """A copy of a classifier with the normalisation of its input: images `(B, C, H, W)` in [0, 1] to `(B, classes)`.

    `Adapter.bake` makes one. Its state is read back by `Baked(net, mean, std).load_state_dict(state)`, where `net` is
    the same architecture; the part of it under `classifier.` is a state of `net` itself. With `mirror_mean` it predicts
    by the mean over an image and its mirror image.

    >>> import ncttt
    >>> Baked(ncttt.models.small(), mean=[0.5] * 3, std=[0.25] * 3)(torch.rand(8, 3, 32, 32)).shape
    torch.Size([8, 10])
    """

    mean: Tensor | None
    std: Tensor | None

    def __init__(
        self,
        classifier: nn.Module,
        mean: Sequence[float] | Tensor | None = None,
        std: Sequence[float] | Tensor | None = None,
        mirror_mean: bool = False,
    ):
        super().__init__()
        if (mean is None) != (std is None):
            raise InputError(f"mean and std go together; found mean={mean}, std={std}")
        self.classifier = deepcopy(classifier)
        self.mirror_mean = mirror_mean
        self.register_buffer("mean", None if mean is None else per_channel("mean", mean))
        self.register_buffer("std", None if std is None else per_channel("std", std))

    def forward(self, images: Tensor) -> Tensor:
        if self.mean is not None and self.std is not None:
            images = (images - self.mean) / self.std
        logits = logits_of(self.classifier(images))
        return mean_logits(logits, logits_of(self.classifier(mirror(images)))) if self.mirror_mean else logits


def bake(model: Branched, moments: Mapping[str, tuple[Tensor, Tensor]], mirror_mean: bool = False) -> Baked:
    """A copy of a model's classifier, frozen, in evaluation mode, with these moments in its BatchNorm layers."""
    mean, std = (model.mean, model.std) if model.normalises else (None, None)
    baked = Baked(model.classifier, mean, std, mirror_mean)
    for name, (mean, var) in moments.items():
        layer = baked.classifier.get_submodule(name)
        layer.running_mean.copy_(mean)  # type: ignore[union-attr]
        layer.running_var.copy_(var)  # type: ignore[union-attr]
    return baked.to(model.mean).eval().requires_grad_(False)


@contextmanager
def used_moments(model: Branched, policy: Policy) -> Iterator[Moments]:
    """Fill a dict, by the one forward inside the `with` block, with the mean and variance that each BatchNorm uses.

    A layer that runs more than once has moments of its own each time, which is an `InputError`.
    """
    moments: Moments = {}
    layers = model.batch_norms()
    names = {layer: name for name, layer in model.classifier.named_modules() if layer in set(layers)}

    def catch(layer: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        if names[layer] in moments:
            raise InputError(
                f"layer {names[layer]!r} runs more than once in a forward, with batch statistics of its own each time, "
                "which one module cannot hold; use norm='source' or ncttt.norm.running(...)"
            )
        moments[names[layer]] = _moments(layer, inputs[0], batch_share(policy, len(inputs[0])))

    handles = [layer.register_forward_pre_hook(catch) for layer in layers]
    try:
        yield moments
    finally:
        for handle in handles:
            handle.remove()


def _moments(layer: nn.Module, features: Tensor, alpha: float) -> tuple[Tensor, Tensor]:
    source_mean, source_var = layer.running_mean, layer.running_var
    assert isinstance(source_mean, Tensor)
    assert isinstance(source_var, Tensor)
    if features.numel() <= features.shape[1]:  # no variance to take
        return source_mean.clone(), source_var.clone()
    exact = features.to(source_mean.dtype).transpose(0, 1).flatten(1)
    var, mean = torch.var_mean(exact, dim=1, correction=0)
    return torch.lerp(source_mean, mean, alpha), torch.lerp(source_var, var, alpha)
