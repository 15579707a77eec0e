"""What moves in an adapter's own model: parameters of the classifier, buffers, and the memory of the method."""

from __future__ import annotations

from itertools import chain

from torch import Tensor, nn

from ncttt.base.errors import InputError
from ncttt.methods.base import Method
from ncttt.model.branched import Branched


def memory_of(method: Method, model: Branched) -> nn.Module | None:
    """A new memory of the method, on the device of the model."""
    memory = method.memory(model)
    if memory is not None and not isinstance(memory, nn.Module):
        raise InputError(f"{type(method).__name__}.memory must give an nn.Module or None; found {memory!r}")
    return None if memory is None else memory.to(model.mean.device).eval()


def moving_parameters(method: Method, model: Branched) -> dict[str, nn.Parameter]:
    """Unfreeze just what the method moves, and give it by name."""
    model.requires_grad_(False)
    moving = method.parameters(model)
    if not isinstance(moving, dict):
        raise InputError(f"{type(method).__name__}.parameters must give a dict by name; found {type(moving)}")
    if method.learns and not moving:
        raise InputError(f"{type(method).__name__} has a loss but nothing to move in this network")
    for parameter in moving.values():
        parameter.requires_grad_(True)
    return moving


def moving_buffers(method: Method, model: Branched, statistics: bool) -> dict[str, Tensor]:
    """What moves beside the parameters: buffers of the branch, the memory, and of BatchNorm layers the `statistics`."""
    buffers = {f"branch.{name}": buffer for name, buffer in method.buffers(model).items()}
    if model.memory is not None:
        buffers |= {f"memory.{name}": tensor for name, tensor in named_tensors(model.memory).items()}
    if statistics:
        layers = set(model.batch_norms())
        named = ((name, module) for name, module in model.named_modules() if module in layers)
        buffers |= {f"{name}.{key}": tensor for name, module in named for key, tensor in module.named_buffers()}
    return buffers


def named_tensors(module: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers of a module by name, those included that its state leaves out."""
    return dict(chain(module.named_parameters(remove_duplicate=False), module.named_buffers(remove_duplicate=False)))
