"""Warm starts: a classifier takes over the weights of a checkpoint, a model of the zoo, or a file of weights."""

import hashlib
import pickle
from contextlib import suppress
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from ncttt.base.errors import InputError
from ncttt.zoo.checkpoint import check_fit, classifier_weights, description


def warm_start(net: nn.Module, start: str | Path) -> list[str]:
    """Copy weights into `net`; returns the names of those that stay as they were: a last layer of other classes.

    `start` is a folder or a zoo name, as for `ncttt.load`, or a file of weights, such as torchvision's: `.safetensors`,
    or what torch.save wrote, of which nothing is executed.
    """
    if not Path(start).exists() and len(Path(start).parts) > 1:
        raise InputError(f"nothing to start from: {start} does not exist")
    weights = _read(Path(start)) if Path(start).is_file() else classifier_weights(start)
    own = net.state_dict()
    fresh = [name for name in _last_layer(net) if name in weights and own[name].shape != weights[name].shape]
    # Older files do not count the batches of BatchNorm, and nobody needs the count.
    counts = {name: tensor for name, tensor in own.items() if name.endswith("num_batches_tracked")}
    taken = {name: tensor for name, tensor in (counts | weights).items() if name not in fresh}
    check_fit({name: own[name] for name in own if name not in fresh}, taken, str(start))
    net.load_state_dict(own | taken)
    return fresh


def start_digest(start: str | Path | None) -> str | None:
    """A digest of the weights to start from, because another model may have their name tomorrow; None without any."""
    if start is None:
        return None
    if Path(start).is_file():
        return hashlib.sha256(Path(start).read_bytes()).hexdigest()
    with suppress(InputError):
        return description(start)["weights_sha256"]
    return None


def _last_layer(net: nn.Module) -> list[str]:
    """The names of the last linear layer's parameters."""
    linear = [(name, module) for name, module in net.named_modules() if isinstance(module, nn.Linear)][-1:]
    return [f"{name}.{kind}" for name, module in linear for kind, _ in module.named_parameters()]


def _read(path: Path) -> dict[str, Tensor]:
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        content = torch.load(path, map_location="cpu", weights_only=True)
    except (SafetensorError, pickle.UnpicklingError, RuntimeError, EOFError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(
            f"{path} is no file of weights alone (safetensors or torch.save of a state dict): {reason}"
        ) from None
    weights = content.get("state_dict", content) if isinstance(content, dict) else content
    if not isinstance(weights, dict) or not all(isinstance(value, Tensor) for value in weights.values()):
        raise InputError(f"{path} holds a {type(weights).__name__}, not a dict of tensors by name")
    return {name.removeprefix("module."): value for name, value in weights.items()}
