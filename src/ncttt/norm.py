"""Which statistics the BatchNorm layers of a classifier use: a policy, set for a while and restored.

A policy is a short string, so that it reads the same in code, configuration and rows:
`"source"` (the running statistics of training), `"batch"` (those of the batch at hand) or `"blend(0.6)"`,
`(1 - alpha) * source + alpha * batch`. Buffers are never changed, replaced or deleted.
"""

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from ncttt.errors import InputError

Policy = str


def blend(alpha: float) -> Policy:
    """The policy that mixes `alpha` of the batch's statistics into the source's.

    The NC-TTT authors' 20 training-mode passes of momentum 0.1 amount to `blend(1 - 0.9**20)`.

    >>> blend(0.6)
    'blend(0.6)'
    """
    policy = f"blend({alpha!r})"
    batch_share(policy)
    return policy


def batch_share(policy: Policy) -> float:
    """The share of batch statistics in a policy: 0 for source, 1 for batch, alpha for a blend.

    >>> batch_share("batch"), batch_share("blend(0.25)")
    (1.0, 0.25)
    """
    if policy in ("source", "batch"):
        return float(policy == "batch")
    match = re.fullmatch(r"blend\(([0-9.eE+-]+)\)", policy) if isinstance(policy, str) else None
    try:
        alpha = float(match[1]) if match else -1.0
    except ValueError:
        alpha = -1.0
    if not 0 <= alpha <= 1:
        raise InputError(
            f"no statistics policy {policy!r}; use 'source', 'batch' or 'blend(alpha)' with 0 <= alpha <= 1"
        )
    return alpha


def batch_norms(module: nn.Module) -> list[_BatchNorm]:
    """Every BatchNorm inside a module that keeps source statistics."""
    return [m for m in module.modules() if isinstance(m, _BatchNorm) and m.running_mean is not None]


@contextmanager
def statistics(layers: Sequence[_BatchNorm], policy: Policy) -> Iterator[None]:
    """Let BatchNorm layers use the statistics of a policy inside the `with` block, whatever mode they are in.

    Gradients flow through the batch's part of the statistics. A layer that sees a single value per channel has no
    variance to take, so it keeps its source statistics.
    """
    alpha = batch_share(policy)
    if alpha > 0 and not layers:
        warnings.warn(f"policy {policy!r} changes nothing: the classifier has no BatchNorm", stacklevel=3)
    before = [(layer.training, layer.track_running_stats) for layer in layers]
    prepare = _use_batch if alpha == 1 else _blended(alpha)
    hooks = [] if alpha == 0 else [layer.register_forward_pre_hook(prepare) for layer in layers]
    try:
        for layer in layers:
            layer.training, layer.track_running_stats = False, False
        yield
    finally:
        for hook in hooks:
            hook.remove()
        for layer, (training, tracking) in zip(layers, before, strict=True):
            layer.training, layer.track_running_stats = training, tracking


def _use_batch(layer: nn.Module, inputs: tuple[Tensor, ...]) -> None:
    # In training mode without tracking, PyTorch normalises by the batch and leaves the buffers alone.
    layer.training = _has_variance(inputs[0])


def _blended(alpha: float) -> Callable[[nn.Module, tuple[Tensor, ...]], Tensor | None]:
    """A hook that changes a layer's input so that its source statistics do to it what the blend would do.

    Working on the input, not on the layer's forward, keeps subclasses with an activation of their own intact.
    """

    def hook(layer: nn.Module, inputs: tuple[Tensor, ...]) -> Tensor | None:
        assert isinstance(layer, _BatchNorm)
        assert layer.running_mean is not None
        assert layer.running_var is not None
        images = inputs[0]
        if not _has_variance(images):
            return None
        axes = [axis for axis in range(images.ndim) if axis != 1]
        batch_var, batch_mean = torch.var_mean(images, axes, correction=0)
        mean = torch.lerp(layer.running_mean, batch_mean, alpha)
        var = torch.lerp(layer.running_var, batch_var, alpha)
        scale = ((layer.running_var + layer.eps) / (var + layer.eps)).sqrt()
        shift = layer.running_mean - mean * scale
        shape = [1, -1] + [1] * (images.ndim - 2)
        return torch.addcmul(shift.view(shape), images, scale.view(shape))

    return hook


def _has_variance(features: Tensor) -> bool:
    return features.numel() > features.shape[1]
