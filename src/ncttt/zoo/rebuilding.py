"""The model that a checkpoint describes, made again before it gets its weights; and how a network is described."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ncttt.base.errors import InputError
from ncttt.methods.base import Method
from ncttt.model.branched import Branched, attach
from ncttt.model.fit import CLASSIFIER
from ncttt.nets.catalogue import rebuild
from ncttt.zoo.hub import DESCRIPTION, WEIGHTS


def architecture_of(net: nn.Module) -> dict[str, Any] | None:
    """How `ncttt.models` made a network, or None for a user's own and for one that was changed since."""
    described = getattr(net, "architecture", None)
    if not isinstance(described, dict):
        return None
    try:
        with torch.device("meta"):
            again = rebuild(described)
    except InputError:
        return None
    return described if repr(again) == repr(net) and _shapes(again) == _shapes(net) else None


def _shapes(net: nn.Module) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in net.state_dict().items()}


def made(
    described: dict[str, Any], method: Method, classifier: nn.Module | None, tensors: dict[str, Tensor], folder: Path
) -> Branched:
    """The model that a checkpoint describes, still without its weights."""
    example = torch.zeros(2, *described["input_shape"])
    try:
        net = _network(described, classifier, tensors, folder).to(_precision(tensors, folder))
        model = attach(net, _layer(described["layer"]), method, example, **described["preprocessing"])
        logits = model.eval()(example.to(model.mean)).shape[1] if described.get("classes") else None
    except InputError:
        raise
    except Exception as error:  # whatever a network raises for settings that it does not take
        reason = next(iter(str(error).splitlines()), "")
        raise InputError(
            f"{folder / DESCRIPTION} describes a model that cannot be made: {type(error).__name__}: {reason:.200}"
        ) from error
    if logits is not None and logits != len(described["classes"]):
        raise InputError(
            f"{folder / DESCRIPTION}, classes: found {len(described['classes'])} names; expected {logits}, one a logit"
        )
    return model


def _network(
    described: dict[str, Any], classifier: nn.Module | None, tensors: dict[str, Tensor], folder: Path
) -> nn.Module:
    if classifier is not None:
        return classifier
    if described["architecture"] is None:
        raise InputError(f"{folder} holds a network of its author's own; pass it as load(folder, classifier=net)")
    with torch.device("meta"):  # so that a description cannot ask for more memory than its weights have
        own = {
            f"{CLASSIFIER}{name}": tensor.shape
            for name, tensor in rebuild(described["architecture"]).state_dict().items()
        }
    theirs = {name: tensor.shape for name, tensor in tensors.items() if name.startswith(CLASSIFIER)}
    for name in sorted(dict(own.items() ^ theirs.items())):
        there, here = (tuple(part[name]) if name in part else "missing" for part in (theirs, own))
        raise InputError(
            f"the checkpoint in {folder} is of another architecture: {name} is {there} there, {here} in the network"
        )
    return rebuild(described["architecture"])


def _precision(tensors: Mapping[str, Tensor], folder: Path) -> torch.dtype:
    mean = tensors.get("mean")
    if mean is None or not mean.is_floating_point():
        found = "none" if mean is None else str(mean.dtype)
        raise InputError(f"{folder / WEIGHTS}, mean: found {found}; expected the mean of each channel")
    return mean.dtype


def _layer(value: str | list[str] | None) -> str | tuple[str, ...] | None:
    return tuple(value) if isinstance(value, list) else value
