"""One training in several processes, on one machine or many, as torchrun starts them."""

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, distributed, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.parallel import DistributedDataParallel

from ncttt.base.devices import available
from ncttt.base.errors import InputError
from ncttt.base.parallel import mean_over_processes, processes
from ncttt.base.words import kind_of


@dataclass(frozen=True)
class Place:
    """Which process this is, of how many."""

    rank: int = 0
    world: int = 1

    @property
    def first(self) -> bool:
        """Whether this is the process that writes."""
        return self.rank == 0


def place() -> Place:
    """Where this process stands in the process group, or alone."""
    if distributed.is_available() and distributed.is_initialized():
        return Place(distributed.get_rank(), distributed.get_world_size())
    return Place()


@contextmanager
def process_group(device: str) -> Iterator[str]:
    """Join the group that torchrun announces, unless that is done; gives the device of this process."""
    if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ or distributed.is_initialized():
        yield device
        return
    cuda = available(device).type == "cuda"
    if cuda:
        device = f"cuda:{os.environ['LOCAL_RANK']}"
        torch.cuda.set_device(device)
    distributed.init_process_group("nccl" if cuda else "gloo")
    try:
        yield device
        distributed.barrier()  # a process that leaves while another one still talks to it may abort at its exit
    finally:
        gc.collect()  # a module that averages gradients holds on to the group, which must not outlive the interpreter
        distributed.destroy_process_group()


def wrapped(joint: nn.Module, device: torch.device) -> nn.Module:
    """The module whose backward averages gradients over the processes; itself when there is only one."""
    if place().world == 1:
        return joint
    ids = [device.index] if device.type == "cuda" and device.index is not None else None
    return DistributedDataParallel(joint, device_ids=ids, broadcast_buffers=True)


def share_of_batch(batch_size: int) -> int:
    """How many images of every batch this process takes."""
    world = place().world
    if batch_size % world:
        raise InputError(f"a batch of {batch_size} images cannot be shared equally by {world} processes")
    return batch_size // world


def any_process(flag: bool, device: torch.device) -> bool:
    """Whether the flag is set in any process."""
    if place().world == 1:
        return flag
    highest = torch.tensor(float(flag), device=device)
    distributed.all_reduce(highest, distributed.ReduceOp.MAX)
    return bool(highest)


def mean_of_all(values: Tensor) -> Tensor:
    """The mean of a tensor over all processes, without gradient."""
    if place().world == 1:
        return values
    values = values.clone()
    distributed.all_reduce(values)
    return values / place().world


@contextmanager
def synchronised_batch_norms(module: nn.Module) -> Iterator[None]:
    """Let BatchNorm layers use the moments of all processes' images together inside the `with` block.

    PyTorch's SyncBatchNorm needs GPUs and replaces the layers; this works on any device and leaves them as they are.
    """
    layers = [m for m in module.modules() if isinstance(m, _BatchNorm)] if place().world > 1 else []
    for layer in layers:
        if type(layer) not in (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d):
            raise InputError(f"synchronise knows PyTorch's own BatchNorm layers; found {kind_of(layer)}")
        layer.forward = partial(_forward, layer)  # type: ignore[method-assign]
    try:
        yield
    finally:
        for layer in layers:
            del layer.forward


def _forward(layer: _BatchNorm, features: Tensor) -> Tensor:
    if not (layer.training or layer.running_mean is None) or processes() == 1:
        return type(layer).forward(layer, features)
    axes = [axis for axis in range(features.ndim) if axis != 1]
    shape = [1, -1] + [1] * (features.ndim - 2)
    exact = features.to(torch.promote_types(features.dtype, torch.float32))
    mean = mean_over_processes(exact.mean(axes))
    var = mean_over_processes((exact - mean.view(shape)).square().mean(axes))
    if layer.track_running_stats and layer.running_mean is not None:
        _remember(layer, mean, var, count=features.numel() // features.shape[1] * processes())
    # Normalising by given moments is what evaluation does, with gradients through both of them.
    scale = (var + layer.eps).rsqrt() * (1.0 if layer.weight is None else layer.weight)
    shift = -mean * scale + (0.0 if layer.bias is None else layer.bias)
    return (exact * scale.view(shape) + shift.view(shape)).to(features.dtype)


@torch.no_grad()
def _remember(layer: _BatchNorm, mean: Tensor, var: Tensor, count: int) -> None:
    assert layer.running_mean is not None
    assert layer.running_var is not None
    assert layer.num_batches_tracked is not None
    layer.num_batches_tracked += 1
    share = 1 / float(layer.num_batches_tracked) if layer.momentum is None else layer.momentum
    layer.running_mean.lerp_(mean.to(layer.running_mean), share)
    layer.running_var.lerp_((var * count / max(1, count - 1)).to(layer.running_var), share)
