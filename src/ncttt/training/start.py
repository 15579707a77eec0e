"""What a training begins with: weights of a checkpoint or a file, or a first convolution that whitens the images."""

import hashlib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional as F

from ncttt.base.errors import InputError
from ncttt.base.words import kind_of
from ncttt.model.fit import check_fit, check_sound, must_be_finite
from ncttt.zoo.hub import is_hub_name
from ncttt.zoo.stored import classifier_weights, description

PATCH = 2  # a patch of 2x2 pixels and three colours has 12 directions; with both signs they fill 24 channels
FLOOR = 5e-4  # added to a variance, so that directions in which the images vary little are not blown up
EMPTY = 1e-5  # a variance that is rounding, as across the colours of grey images


def warm_start(net: nn.Module, start: str | Path) -> list[str]:
    """Copy weights into `net`; returns the names of those that stay as they were: a last layer of other classes.

    `start` is a folder or a zoo name, as for `ncttt.load`, or a file of weights, such as torchvision's: `.safetensors`,
    or what torch.save wrote, of which nothing is executed.
    """
    if not is_hub_name(start) and not Path(start).exists() and len(Path(start).parts) > 1:
        raise InputError(f"nothing to start from: {start} does not exist")
    weights = _read(Path(start)) if Path(start).is_file() else classifier_weights(start)
    own = net.state_dict()
    fresh = [name for name in _last_layer(net) if name in weights and own[name].shape != weights[name].shape]
    # Older files do not count the batches of BatchNorm, and nobody needs the count.
    counts = {name: tensor for name, tensor in own.items() if name.endswith("num_batches_tracked")}
    taken = {name: tensor for name, tensor in (counts | weights).items() if name not in fresh}
    check_fit({name: own[name] for name in own if name not in fresh}, taken, str(start))
    check_sound(taken, must_be_finite(net), str(start))
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
    except Exception as error:  # a damaged file makes the readers raise anything
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise InputError(
            f"{path} is no file of weights alone (safetensors or torch.save of a state dict): {reason}"
        ) from None
    weights = content.get("state_dict", content) if isinstance(content, dict) else content
    if not isinstance(weights, dict) or not all(
        isinstance(name, str) and isinstance(value, Tensor) for name, value in weights.items()
    ):
        raise InputError(f"{path} holds {kind_of(weights)}, not a dict of tensors by name")
    return {name.removeprefix("module."): value for name, value in weights.items()}


def whiten_stem(net: nn.Module, batches: Iterable[Tensor]) -> None:
    """Let the first convolution begin with filters whose results on the images' patches are white.

    The filters are the principal directions of all 2x2 patches, scaled to unit variance, the strongest first, each with
    both signs, because a ReLU follows; channels that are left keep their random filters. The batches are of images as
    the network gets them: normalised.
    """
    covariance, colours = _covariance(batches)
    stem = next((module for module in net.modules() if isinstance(module, nn.Conv2d)), None)
    if stem is None or stem.groups > 1 or min(stem.kernel_size) < PATCH or stem.in_channels != colours:
        raise InputError(
            f"whiten needs a network that begins with a convolution of {PATCH} pixels and more on images of "
            f"{colours} channels; found {stem}"
        )
    variances, directions = torch.linalg.eigh(covariance)
    filters = (directions / (variances + FLOOR).sqrt()).T[variances > EMPTY].flip(0)
    filters = filters[: stem.out_channels // 2].view(-1, colours, PATCH, PATCH)
    top, left = ((size - PATCH) // 2 for size in stem.kernel_size)
    with torch.no_grad():
        stem.weight[: 2 * len(filters)] = 0
        stem.weight[: 2 * len(filters), :, top : top + PATCH, left : left + PATCH] = torch.cat([filters, -filters])


def _covariance(batches: Iterable[Tensor]) -> tuple[Tensor, int]:
    """The covariance of all patches, and how many channels the images have."""
    count, total, squares, colours = 0, torch.zeros(()), torch.zeros(()), 0
    for images in batches:
        patches = F.unfold(images, PATCH).transpose(0, 1).flatten(1)
        count, colours = count + patches.shape[1], images.shape[1]
        total, squares = total + patches.sum(1), squares + patches @ patches.T
    mean = total / count
    return squares / count - torch.outer(mean, mean), colours
