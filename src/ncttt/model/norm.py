"""Which statistics the BatchNorm layers of a classifier use: a policy, set for a while and restored.

A policy is a short string, so that it reads the same in code, configuration and rows:

- `"source"`: the running statistics of training;
- `"batch"`: those of the batch at hand;
- `"blend(0.6)"`: `(1 - alpha) * source + alpha * batch`, layer by layer: a layer's batch statistics are those of
  features that the blends before it have normalised;
- `"running(0.1, 20)"`: the buffers after 20 passes in training mode with momentum 0.1. In such a pass every layer
  normalises by the batch alone and only its buffers move; the prediction then uses the moved buffers. This is what the
  NC-TTT authors' code does, and no blend: there a layer's batch statistics are those of fully normalised features.

Only a running policy changes buffers, in place.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from ncttt.base.errors import InputError
from ncttt.base.words import counted

Policy = str
KNOWN = (
    "'source', 'batch', 'blend(alpha)' with 0 <= alpha <= 1, or 'running(momentum, passes)' with 0 < momentum <= 1 "
    "and a whole number of passes from 1"
)


def blend(alpha: float) -> Policy:
    """The policy that mixes `alpha` of the batch's statistics into the source's.

    >>> blend(0.6)
    'blend(0.6)'
    """
    return _checked(f"blend({alpha!r})")


def running(momentum: float, passes: int = 1) -> Policy:
    """The policy of buffers that passes in training mode move by a momentum.

    A gradient pass moves them once. Where no gradient is taken, `passes` passes come before the prediction.

    >>> running(0.1, 20)
    'running(0.1, 20)'
    """
    return _checked(f"running({momentum!r}, {passes!r})")


def batch_share(policy: Policy) -> float:
    """The share of batch statistics in a policy: 0 for source, 1 for batch, alpha for a blend.

    >>> batch_share("batch"), batch_share("blend(0.25)"), batch_share("running(0.5, 2)")
    (1.0, 0.25, 0.75)
    """
    if policy in ("source", "batch"):
        return float(policy == "batch")
    numbers = _numbers(policy)
    if numbers is None:
        raise InputError(f"no statistics policy {policy!r}; use {KNOWN}")
    return numbers[0] if len(numbers) == 1 else 1 - (1 - numbers[0]) ** numbers[1]


def moves_buffers(policy: Policy) -> bool:
    """Whether passes under this policy move the buffers of BatchNorm layers.

    >>> moves_buffers("running(0.1, 20)"), moves_buffers("blend(0.5)")
    (True, False)
    """
    return policy.startswith("running(")


def stepping(policy: Policy) -> Policy:
    """The policy of one gradient pass: for a running one a single pass, because each step makes one.

    >>> stepping("running(0.1, 20)")
    'running(0.1, 1)'
    """
    numbers = _numbers(policy)
    return running(numbers[0]) if moves_buffers(policy) and numbers else policy


def looking(policy: Policy) -> Policy:
    """The policy that shows what a pass under this one would see, without moving anything."""
    return "batch" if moves_buffers(policy) else policy


def predicting(policy: Policy) -> Policy:
    """The policy of a prediction: for a running one the buffers as they stand."""
    return "source" if moves_buffers(policy) else policy


def _checked(policy: Policy) -> Policy:
    batch_share(policy)
    return policy


def _numbers(policy: Policy) -> tuple[float] | tuple[float, int] | None:
    """Alpha of a blend, or momentum and passes; None if it is neither."""
    match = re.fullmatch(r"(blend|running)\(([0-9.eE+-]+)(?:, *([0-9]{1,9}))?\)", str(policy))
    if match is None or (match[1] == "blend") != (match[3] is None):
        return None
    try:
        share = float(match[2])
    except ValueError:
        return None
    if match[1] == "blend":
        return (share,) if 0 <= share <= 1 else None
    return (share, int(match[3])) if 0 < share <= 1 and int(match[3]) >= 1 else None


def batch_norms(module: nn.Module) -> list[_BatchNorm]:
    """Every BatchNorm inside a module that keeps source statistics."""
    return [m for m in module.modules() if isinstance(m, _BatchNorm) and m.running_mean is not None]


class _Rule(NamedTuple):
    """What a policy does in one layer: the share of the batch's statistics, and by how much its buffers move."""

    alpha: float
    momentum: float | None = None


def _rule(policy: Policy) -> _Rule:
    return _Rule(1.0, batch_share(policy)) if moves_buffers(policy) else _Rule(batch_share(policy))


@contextmanager
def statistics(layers: Sequence[_BatchNorm], policy: Policy) -> Iterator[Applied]:
    """Let BatchNorm layers use the statistics of a policy inside the `with` block, whatever mode they are in.

    Gradients flow through the batch's part of the statistics. A layer that sees a single value per channel has no
    variance to take, so it keeps its source statistics. Under a running policy one pass moves the buffers as far as all
    of its passes would: without a step between them, each of them sees the same statistics.

    What it gives can tell whether any layer ran.
    """
    rule = _rule(policy)
    if rule.alpha > 0 and not layers:
        warnings.warn(f"policy {policy!r} changes nothing: the classifier has no BatchNorm", stacklevel=3)
    inner = _Hook(rule)
    before = [(layer.training, layer.track_running_stats, layer.momentum) for layer in layers]
    # A policy inside another one replaces it for as long as it lasts.
    outer = {hook: hook.rule for layer in layers for hook in _hooks_on(layer)}
    handles = [layer.register_forward_pre_hook(inner) for layer in layers if rule.alpha and not _hooks_on(layer)]
    try:
        for hook in outer:
            hook.rule = rule
        for layer in layers:
            layer.training, layer.track_running_stats = False, False
        yield Applied(policy, len(layers), {inner, *outer})
    finally:
        for handle in handles:
            handle.remove()
        for hook, value in outer.items():
            hook.rule = value
        for layer, (training, tracking, momentum) in zip(layers, before, strict=True):
            layer.training, layer.track_running_stats, layer.momentum = training, tracking, momentum


class _Hook:
    """A hook before a BatchNorm: chooses its mode, or changes its input for a blend."""

    def __init__(self, rule: _Rule):
        self.rule, self.ran = rule, False

    def __call__(self, layer: nn.Module, inputs: tuple[Tensor, ...]) -> Tensor | None:
        assert isinstance(layer, _BatchNorm)
        self.ran = True
        alpha, momentum = self.rule
        has_variance = inputs[0].numel() > inputs[0].shape[1]
        # In training mode without tracking, PyTorch normalises by the batch and leaves the buffers alone.
        layer.training = alpha == 1 and has_variance
        layer.track_running_stats = momentum is not None
        layer.momentum = layer.momentum if momentum is None else momentum
        return _blended(layer, inputs[0], alpha) if 0 < alpha < 1 and has_variance else None


@dataclass(frozen=True)
class Applied:
    """A policy that has been set in some layers, and the hooks that apply it."""

    policy: Policy
    layers: int
    hooks: set[_Hook]

    def check_ran(self) -> None:
        """Raise an `InputError` if a whole forward ran none of the layers: somebody else's ran, or they are unused."""
        if self.layers and batch_share(self.policy) > 0 and not any(hook.ran for hook in self.hooks):
            raise InputError(
                f"statistics {self.policy!r} changed nothing: the network has {counted(self.layers, 'BatchNorm layer')}"
                ", but its forward ran none of them (it may run a compiled function, or modules of another network); "
                "use norm='source', or pass a network whose own layers run"
            )


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


def _hooks_on(layer: nn.Module) -> list[_Hook]:
    return [hook for hook in layer._forward_pre_hooks.values() if isinstance(hook, _Hook)]
