"""Whether tensors from a file fit a module: names, shapes and kinds of numbers, and values that can be used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase

from ncttt.base.errors import InputError
from ncttt.base.words import kind_of

CLASSIFIER = "classifier."  # before the names of the classifier's tensors in a `Branched`


def check_fit(own: Mapping[str, Tensor], theirs: Any, where: str, adapter: bool = False) -> None:
    """Raise an `InputError` that names the first tensor that is not the same in name, shape and kind of numbers.

    Numbers of another precision are taken over, but not into an `adapter`, whose states are its own.
    """
    theirs = theirs if isinstance(theirs, Mapping) else {}
    kinds = [{str(name): _kind(part, adapter) for name, part in parts.items()} for parts in (theirs, own)]
    if kinds[0] != kinds[1]:
        name = sorted(dict(kinds[0].items() ^ kinds[1].items()))[0]
        there, here = (part.get(name, "missing") for part in kinds)
        other, whose = ("model", "this adapter") if adapter else ("architecture", "the network")
        raise InputError(f"{where} is of another {other}: {name} is {there} there, {here} in {whose}")


def check_sound(tensors: Mapping[str, Tensor], names: Iterable[str], where: str) -> None:
    """Raise an `InputError` that names the first of these tensors with a value that no training gives."""
    for name in sorted(set(names) & tensors.keys()):
        tensor = tensors[name]
        if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
            raise InputError(f"{where}: {name} holds NaN or infinite values; expected finite ones")
        if name.endswith(("running_var", ".variances")) and bool((tensor < 0).any()):
            raise InputError(f"{where}: {name} holds negative values; expected variances")


def must_be_finite(module: nn.Module, own: Iterable[str] = ()) -> set[str]:
    """The names of parameters, of the statistics of normalisation layers, and of buffers under the prefixes `own`.

    Other buffers are the user's, who may keep minus infinity in an attention mask.
    """
    names = {name for name, _ in module.named_parameters(remove_duplicate=False)}
    for prefix, part in module.named_modules(remove_duplicate=False):
        if isinstance(part, _NormBase):
            names |= {f"{prefix}.{name}" if prefix else name for name, _ in part.named_buffers(recurse=False)}
    return names | {name for name, _ in module.named_buffers() if name.startswith(tuple(own))}


def _kind(tensor: Any, precision: bool) -> str:
    if not isinstance(tensor, Tensor):
        return kind_of(tensor)
    odd = " without values" if tensor.is_meta else "" if tensor.layout == torch.strided else f" {tensor.layout}"
    return f"{tuple(tensor.shape)}{f' {tensor.dtype}' if precision else _numbers(tensor)}{odd}"


def _numbers(tensor: Tensor) -> str:
    if tensor.is_floating_point():
        return ""
    return f" of {'complex' if tensor.is_complex() else 'truth' if tensor.dtype == torch.bool else 'whole'} numbers"
