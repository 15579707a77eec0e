"""Which statistics the BatchNorm layers of a classifier use: a policy, set for a while and restored.

A policy is a short string, so that it reads the same in code, configuration and rows:
`"source"` (the running statistics of training), `"batch"` (those of the batch at hand) or `"blend(0.6)"`,
`(1 - alpha) * source + alpha * batch`. Buffers are never changed, replaced or deleted.
"""

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from ncttt.base.errors import InputError

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
    inner = _Policy(alpha)
    before = [(layer.training, layer.track_running_stats) for layer in layers]
    # A policy inside another one replaces it for as long as it lasts.
    outer = {hook: hook.alpha for layer in layers for hook in _policies_on(layer)}
    handles = [layer.register_forward_pre_hook(inner) for layer in layers if alpha and not _policies_on(layer)]
    try:
        for hook in outer:
            hook.alpha = alpha
        for layer in layers:
            layer.training, layer.track_running_stats = False, False
        yield
    finally:
        for handle in handles:
            handle.remove()
        for hook, value in outer.items():
            hook.alpha = value
        for layer, (training, tracking) in zip(layers, before, strict=True):
            layer.training, layer.track_running_stats = training, tracking


class _Policy:
    """A hook before a BatchNorm: chooses its mode, or changes its input for a blend."""

    def __init__(self, alpha: float):
        self.alpha = alpha

    def __call__(self, layer: nn.Module, inputs: tuple[Tensor, ...]) -> Tensor | None:
        assert isinstance(layer, _BatchNorm)
        has_variance = inputs[0].numel() > inputs[0].shape[1]
        # In training mode without tracking, PyTorch normalises by the batch and leaves the buffers alone.
        layer.training = self.alpha == 1 and has_variance
        return _blended(layer, inputs[0], self.alpha) if 0 < self.alpha < 1 and has_variance else None


def _blended(layer: _BatchNorm, features: Tensor, alpha: float) -> Tensor:
    """Features changed so that a layer's source statistics do to them what the blend would do.

    Working on the input, not on the layer's forward, keeps subclasses with an activation of their own intact.
    """
    assert layer.running_mean is not None
    assert layer.running_var is not None
    axes = [axis for axis in range(features.ndim) if axis != 1]
    shape = [1, -1] + [1] * (features.ndim - 2)
    source_mean, source_var = layer.running_mean.view(shape), layer.running_var.view(shape)
    exact = features.to(source_mean.dtype)
    # Two plain means are several times faster here than torch.var_mean.
    batch_mean = exact.mean(axes, keepdim=True)
    batch_var = (exact - batch_mean).square().mean(axes, keepdim=True)
    mean, var = torch.lerp(source_mean, batch_mean, alpha), torch.lerp(source_var, batch_var, alpha)
    scale = ((source_var + layer.eps) / (var + layer.eps)).sqrt()
    return torch.addcmul(source_mean - mean * scale, exact, scale).to(features.dtype)


def _policies_on(layer: nn.Module) -> list[_Policy]:
    return [hook for hook in layer._forward_pre_hooks.values() if isinstance(hook, _Policy)]
