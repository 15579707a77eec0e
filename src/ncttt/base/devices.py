"""Devices by name, refused with a clear error where this machine does not have them, and what is for GPUs alone."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from ncttt.base.errors import InputError
from ncttt.base.numbers import check_threads


def available(device: str) -> torch.device:
    """The device of that name, if this machine has it and can compute on it."""
    try:
        found = torch.empty(0, device=device).device
    except Exception as error:  # each kind of device fails in its own way
        reason = (str(error).splitlines() or [""])[0].split(". ")[0]
        raise InputError(f"device {device!r} cannot be used here: {reason}") from None
    numbered = found.type == "cpu" and torch.device(device).index  # PyTorch takes any number for its one processor
    if not device or found.type == "meta" or numbered:
        raise InputError(f"device must be cpu, cuda or cuda:N; found {device!r}")
    return found


def use_threads(count: int | None) -> None:
    """Let PyTorch compute with so many threads; None leaves the number as it is."""
    check_threads("threads", count)
    if count is not None:
        torch.set_num_threads(count)


def pinned(tensor: torch.Tensor, device: str | torch.device) -> torch.Tensor:
    """The tensor in memory that a GPU can copy from while the processor goes on; as it is for another device."""
    return tensor.pin_memory() if torch.device(device).type == "cuda" else tensor


@contextmanager
def fast_kernels(on: bool, device: str | torch.device) -> Iterator[None]:
    """On a GPU, compute in TF32 and let cuDNN try which algorithms are fastest, until the `with` block ends.

    Results differ in their last digits, and from run to run. On another device nothing is changed.
    """
    if not on or torch.device(device).type != "cuda":
        yield
        return
    flags = [(torch.backends.cuda.matmul, "allow_tf32"), (torch.backends.cudnn, "allow_tf32")]
    flags += [(torch.backends.cudnn, "benchmark")]
    before = [getattr(owner, name) for owner, name in flags]
    try:
        for owner, name in flags:
            setattr(owner, name, True)
        yield
    finally:
        for (owner, name), value in zip(flags, before, strict=True):
            setattr(owner, name, value)
