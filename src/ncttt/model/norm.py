"""Which statistics the BatchNorm layers of a classifier use: a policy, set for a while and restored.

A policy is a short string, so that it reads the same in code, configuration and rows:

- `"source"`: the running statistics of training;
- `"batch"`: those of the batch at hand;
- `"blend(0.6)"`: `(1 - alpha) * source + alpha * batch`, layer by layer: a layer's batch statistics are those of
  features that the blends before it have normalised;
- `"prior(16)"`: a blend whose share follows the size of the batch, `B / (B + 16)`: the source's statistics count as 16
  images (Schneider et al., 2020);
- `"instance(4)"`: each image's own statistics, as far as they are more than 4 standard errors off the source's: the
  instance-aware BatchNorm of NOTE (Gong et al., 2022). `"instance(4, 1)"` compares them with the batch's instead, as
  such layers do in training, and a number between with a blend of both;
- `"stream(0.01)"`: a moving mean over the stream, which starts at the source's. A batch of B images moves it by
  `1 - (1 - 0.01)^B` before it is normalised, so B batches of one image move it as far;
- `"window(128)"`: the statistics of the last 128 images together, those of the batch among them; the source's stand for
  images that did not come yet, and a batch that is larger stands for itself;
- `"running(0.1, 20)"`: the buffers after 20 passes in training mode with momentum 0.1. In such a pass every layer
  normalises by the batch alone and only its buffers move; the prediction then uses the moved buffers. This is what the
  NC-TTT authors' code does, and no blend: there a layer's batch statistics are those of fully normalised features.

A running policy moves buffers in place, in every pass. Passes under `stream` and `window` all start from the buffers as
they stand, and only record where they would move (`Moves`), so that a batch moves them once, however many passes it
takes.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from ncttt.base.errors import InputError
from ncttt.base.words import counted
from ncttt.model.moments import as_source, values_of
from ncttt.model.policies import (
    Policy,
    batch_share,
    blend,
    instance,
    looking,
    moves_buffers,
    moves_in_passing,
    needs_passes,
    predicting,
    prior,
    running,
    standing,
    stepping,
    stream,
    window,
)
from ncttt.model.rules import Moves, Rule

__all__ = [
    "Applied",
    "Moves",
    "Policy",
    "aside",
    "batch_norms",
    "batch_share",
    "blend",
    "instance",
    "looking",
    "moves_buffers",
    "moves_in_passing",
    "needs_passes",
    "predicting",
    "prior",
    "running",
    "standing",
    "statistics",
    "stepping",
    "stream",
    "window",
]


def batch_norms(module: nn.Module) -> list[_BatchNorm]:
    """Every BatchNorm inside a module that keeps source statistics."""
    return [m for m in module.modules() if isinstance(m, _BatchNorm) and m.running_mean is not None]


@contextmanager
def statistics(
    layers: Sequence[_BatchNorm], policy: Policy, windows: Iterable[nn.Module] | None = None
) -> Iterator[Applied]:
    """Let BatchNorm layers use the statistics of a policy inside the `with` block, whatever mode they are in.

    Gradients flow through the batch's part of the statistics. A layer that sees a single value per channel has no
    variance to take, so it keeps its source statistics, unless it has those of past images. Under a running policy one
    pass moves the buffers as far as all of its passes would: without a step between them, each of them sees the same
    statistics.

    What it yields can check whether any layer ran. Under `stream` and `window` its `moves` hold where buffers, and the
    `windows` of the layers, would move, once for each time that a layer runs; `moves.keep()` moves them.
    """
    rule = Rule(policy, dict(zip(layers, windows, strict=True)) if windows else {})
    if rule.active and not layers:
        warnings.warn(f"policy {policy!r} changes nothing: the classifier has no BatchNorm", stacklevel=3)
    inner = _Hook(rule)
    before = [(layer.training, layer.track_running_stats, layer.momentum) for layer in layers]
    # A policy inside another one replaces it for as long as it lasts.
    outer = {hook: hook.rule for layer in layers for hook in _hooks_on(layer)}
    handles = [layer.register_forward_pre_hook(inner) for layer in layers if rule.active and not _hooks_on(layer)]
    try:
        for hook in outer:
            hook.rule = rule
        for layer in layers:
            layer.training, layer.track_running_stats = False, False
        yield Applied(policy, len(layers), rule.moves, {inner, *outer})
    finally:
        for handle in handles:
            handle.remove()
        for hook, value in outer.items():
            hook.rule = value
        for layer, (training, tracking, momentum) in zip(layers, before, strict=True):
            layer.training, layer.track_running_stats, layer.momentum = training, tracking, momentum


@contextmanager
def aside(layers: Sequence[_BatchNorm]) -> Iterator[None]:
    """Let a pass inside the `with` block see the statistics of the policy around it, and move nothing.

    For another pass over a batch, of a teacher or of augmented images, which must not count as a second batch.
    """
    around = {hook: hook.rule for layer in layers for hook in _hooks_on(layer)}
    try:
        for hook, rule in around.items():
            hook.rule = rule.aside()
        yield
    finally:
        for hook, rule in around.items():
            hook.rule = rule


@dataclass(frozen=True)
class Applied:
    """A policy that has been set in some layers, where its passes would move buffers, and the hooks that apply it."""

    policy: Policy
    layers: int
    moves: Moves
    hooks: set[_Hook]

    def check_ran(self) -> None:
        """Raise an `InputError` if a whole forward ran none of the layers: somebody else's ran, or they are unused."""
        if self.layers and batch_share(self.policy) > 0 and not any(hook.ran for hook in self.hooks):
            raise InputError(
                f"statistics {self.policy!r} changed nothing: the network has {counted(self.layers, 'BatchNorm layer')}"
                ", but its forward ran none of them (it may run a compiled function, or modules of another network); "
                "use norm='source', or pass a network whose own layers run"
            )


class _Hook:
    """A hook before a BatchNorm: chooses its mode, or changes its input to other moments."""

    def __init__(self, rule: Rule):
        self.rule, self.ran = rule, False

    def __call__(self, layer: nn.Module, inputs: tuple[Tensor, ...]) -> Tensor | None:
        assert isinstance(layer, _BatchNorm)
        rule, features = self.rule, inputs[0]
        self.ran = True
        layer.training = rule.trains and values_of(features) > 1
        layer.track_running_stats = rule.momentum is not None
        layer.momentum = layer.momentum if rule.momentum is None else rule.momentum
        moments = rule.moments(layer, features)
        return None if moments is None else as_source(layer, features, moments)


def _hooks_on(layer: nn.Module) -> list[_Hook]:
    return [hook for hook in layer._forward_pre_hooks.values() if isinstance(hook, _Hook)]
