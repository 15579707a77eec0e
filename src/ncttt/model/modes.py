"""What a pass changes beside what it computes, modes and buffers, for a while: both come back afterwards.

A counter, a running mean of somebody's own or an observer changes in evaluation mode, too. Left like that, a prediction
would depend on the batches before it, and no reset could bring it back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from ncttt.base.errors import InputError


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Put a module and all its parts into evaluation mode inside the `with` block, which leaves no trace in buffers."""
    modes = {part: part.training for part in module.modules()}
    module.eval()
    try:
        with buffers_kept(module):
            yield
    finally:
        for part, training in modes.items():
            part.training = training


@contextmanager
def buffers_kept(module: nn.Module, besides: Iterable[Tensor] = ()) -> Iterator[None]:
    """Let buffers of a module, `besides` those that may move, change inside the `with` block, and put them back."""
    moving = set(map(id, besides))
    held = [
        (part, name, tensor)
        for part in module.modules()
        for name, tensor in part._buffers.items()
        if tensor is not None and id(tensor) not in moving
    ]
    live = [tensor for _, _, tensor in held if _can_change(tensor)]
    saved = [torch.empty_like(tensor) for tensor in live]
    _copy(saved, live)
    try:
        yield
    finally:
        for part, name, tensor in held:
            part._buffers[name] = tensor
        _copy(live, saved)
    _check_none_new(module, {(part, name) for part, name, _ in held}, moving)


def _can_change(tensor: Tensor) -> bool:
    """Whether PyTorch lets anybody write into it, here."""
    if tensor.layout != torch.strided or torch._debug_has_internal_overlap(tensor) == 1:  # type: ignore[attr-defined]
        return False
    return not tensor.is_inference() or torch.is_inference_mode_enabled()


def _copy(targets: list[Tensor], sources: list[Tensor]) -> None:
    if targets:
        # By `data`, because autograd refuses a graph whose buffers were written to, be it by the same values.
        torch._foreach_copy_([tensor.data for tensor in targets], sources)  # type: ignore[attr-defined]


def _check_none_new(module: nn.Module, known: set[tuple[nn.Module, str]], moving: set[int]) -> None:
    """Raise an `InputError` for a buffer that came with the forward; a cache, which no state has, is left alone."""
    for prefix, part in module.named_modules():
        for name, tensor in part._buffers.items():
            new = tensor is not None and id(tensor) not in moving and (part, name) not in known
            if new and name not in part._non_persistent_buffers_set:
                path = f"{prefix}.{name}" if prefix else name
                raise InputError(
                    f"the forward of the network makes a buffer {path!r}, which a reset cannot unmake; run the network "
                    "on a batch before it is adapted, or register the buffer with persistent=False"
                )
