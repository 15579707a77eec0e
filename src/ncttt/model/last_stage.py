"""`layer="auto"`: the last stage of any classifier, found by the shapes of what its modules give for a small batch.

It is the last feature map `(B, C, H, W)` or token sequence `(B, N, C)` of several positions: what the network pools.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ncttt.base.errors import InputError
from ncttt.model.modes import evaluating

AUTO = "auto"
ACTIVATIONS = nn.ReLU.__module__


@dataclass(frozen=True, eq=False)
class _Ran:
    name: str
    module: nn.Module
    output: Tensor
    version: int


@torch.no_grad()
def last_stage(classifier: nn.Module, images: Tensor) -> str:
    """The dotted name of the last module that gives several positions for images `(B, C, H, W)`, as normalised.

    Of modules that give the same tensor it is the outermost; of a sequence of stages it is the last stage.

    >>> from ncttt import models
    >>> last_stage(models.resnet18(), torch.rand(2, 3, 32, 32))
    'layer4'
    """
    ran = _run(classifier, images)
    usable = [each for each in ran if _reads_well(each, len(images))]
    last = usable[-1] if usable else None
    if last is None or any(_channels_last(each.output) for each in ran[ran.index(last) :]):
        kind = "feature map (B, C, H, W) and no token sequence (B, N, C) of several positions at the end of"
        raise InputError(
            f"layer='auto' finds no {kind} {type(classifier).__name__} for images of {tuple(images.shape[1:])}; "
            "name a layer of net.named_modules()"
        )
    return _innermost_stage(last, usable).name


def _run(classifier: nn.Module, images: Tensor) -> list[_Ran]:
    """The modules that gave one tensor, once, in the order in which they ended."""
    ran: list[_Ran] = []
    calls: dict[str, int] = {}

    def hook(name: str) -> Any:
        def keep(module: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
            calls[name] = calls.get(name, 0) + 1
            # What returns its input, such as a dropout that is off, does nothing that could be read.
            if isinstance(output, Tensor) and not any(output is given for given in inputs):
                ran.append(_Ran(name, module, output, _version(output)))

        return keep

    hooks = [module.register_forward_hook(hook(name)) for name, module in classifier.named_modules() if name]
    try:
        with evaluating(classifier):
            classifier(images)
    finally:
        for handle in hooks:
            handle.remove()
    return [each for each in ran if calls[each.name] == 1]


def _reads_well(ran: _Ran, images: int) -> bool:
    """Whether it is a map or a sequence of several positions that a tap can read: not changed in place afterwards."""
    shape, has_weights = ran.output.shape, next(ran.module.parameters(), None) is not None
    computes = has_weights or type(ran.module).__module__ == ACTIVATIONS  # and does not pool
    if not computes or len(shape) not in (3, 4) or shape[0] != images or _version(ran.output) != ran.version:
        return False
    if len(shape) == 3:
        return shape[1] > 1
    return shape[2] * shape[3] > 1 and not _channels_last(ran.output)


def _version(output: Tensor) -> int:
    return -1 if output.is_inference() else output._version  # as in a tap: inference tensors have no version


def _channels_last(output: Tensor) -> bool:
    """Whether it is a map `(B, H, W, C)`, as of Swin transformers, whose rows would be taken for channels."""
    return output.ndim == 4 and output.shape[1] == output.shape[2] != output.shape[3]


def _innermost_stage(stage: _Ran, usable: list[_Ran]) -> _Ran:
    """Where a sequence holds stages of several shapes, its last one, if that is a module of parts."""
    inside = [each for each in usable if each.name.rpartition(".")[0] == stage.name]
    last = next((each for each in inside if each.output is stage.output), None)
    if last is None or not isinstance(stage.module, nn.Sequential) or next(last.module.children(), None) is None:
        return stage
    several = len({each.output.shape for each in inside}) > 1
    return _innermost_stage(last, usable) if several else stage
