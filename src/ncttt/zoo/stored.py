"""What a checkpoint holds on disk: its folder, its description and its tensors, found, read and verified."""

import hashlib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as deserialize
from safetensors.torch import save as serialize
from torch import Tensor

from ncttt.base.errors import InputError, nearest
from ncttt.base.files import replace_files, waiting
from ncttt.model.fit import CLASSIFIER
from ncttt.zoo.description import SHARED, read_description
from ncttt.zoo.hub import DESCRIPTION, WEIGHTS, fetch, is_hub_name
from ncttt.zoo.shipped import HOME, names


def description(folder: str | Path) -> dict[str, Any]:
    """What `save` wrote beside the weights: architecture, layer, method, preprocessing and a digest of the weights."""
    return _read_description(checkpoint_folder(folder) / DESCRIPTION)


def trained_method(folder: str | Path) -> dict[str, Any]:
    """Name and settings of the method that a checkpoint was trained for.

    A method at an address must be loaded already: no file of somebody else's may choose which module is imported.
    """
    settings = description(folder)["method"]
    module, _, kind = str(settings.get("name")).partition(":")
    if kind and module not in sys.modules:
        raise InputError(
            f"{folder} was trained for the method {module}:{kind}, which is not loaded; "
            f"name it (--method {module}:{kind}), or import {module} first"
        )
    return settings


def checkpoint_folder(name: str | Path) -> Path:
    """A folder of the user's own, or else where the zoo, or the cache of the hub, keeps a model of that name."""
    if is_hub_name(name):
        return fetch(str(name))
    if Path(name).is_dir() or Path(name).name != str(name):
        return Path(name)
    if str(name) in names():
        return HOME / name
    raise InputError(f"no folder {str(name)!r} and no model of that name in the zoo{nearest(str(name), names())}")


def check_checkpoint(folder: str | Path, called: str | None = None) -> dict[str, Any]:
    """The description of a checkpoint that is whole; else an `InputError`, in which the folder is `called` so."""
    folder = Path(folder)
    try:
        described = description(folder)
        read_tensors(folder, described)
    except InputError as error:
        raise InputError(str(error).replace(str(folder), called or str(folder))) from None
    return described


def classifier_weights(folder: str | Path) -> dict[str, Tensor]:
    """The tensors of a checkpoint's classifier by their names in it, whatever the network is."""
    folder = checkpoint_folder(folder)
    tensors = read_tensors(folder, description(folder))
    return {name.removeprefix(CLASSIFIER): tensor for name, tensor in tensors.items() if name.startswith(CLASSIFIER)}


def _read_description(path: Path) -> dict[str, Any]:
    path = _waiting(path) or path
    if not path.is_file():
        models = [name for name in ("last", "best") if (path.parent / name / path.name).is_file()]
        hint = f"; it is the folder of a training, whose model is {path.parent / models[0]}" if models else ""
        raise InputError(f"no checkpoint in {path.parent}: {path.name} is missing{hint}")
    return read_description(path)


def _waiting(path: Path) -> Path | None:
    """The description that a kill kept from taking its place beside weights that had taken theirs."""
    files = waiting(path)
    if not files:
        return None
    try:
        weights = hashlib.sha256((path.parent / WEIGHTS).read_bytes()).hexdigest()
    except OSError:
        return None
    return next((file for file in files if _digest_in(file) == weights), None)


def _digest_in(description: Path) -> str | None:
    try:
        return json.loads(description.read_text())["weights_sha256"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def share_classifier(folder: Path, other: str) -> None:
    """Leave out of a model of the zoo the classifier that another one has, if that is the same to the bit.

    `weights_sha256`, which rows know the model by, stays that of all its weights.
    """
    described = json.loads((folder / DESCRIPTION).read_text())
    tensors, theirs = _own_tensors(folder, described), classifier_weights(other)
    own = {name: tensor for name, tensor in tensors.items() if not name.startswith(CLASSIFIER)}
    if len(own) + len(theirs) != len(tensors) or not all(
        torch.equal(tensors[f"{CLASSIFIER}{name}"], tensor) for name, tensor in theirs.items()
    ):
        raise InputError(f"{folder} has another classifier than {other}")
    weights = serialize(own)
    described |= {SHARED: other, "own_sha256": hashlib.sha256(weights).hexdigest()}
    text = json.dumps(described, indent=2) + "\n"
    replace_files({folder / WEIGHTS: weights, folder / DESCRIPTION: text.encode()})


def read_tensors(folder: Path, described: Mapping[str, Any]) -> dict[str, Tensor]:
    """All tensors of a checkpoint, those that a model of the zoo shares with another one included."""
    tensors, other = _own_tensors(folder, described), described.get(SHARED)
    if other is not None:
        if folder.parent != HOME or other not in names():
            raise InputError(f"{folder}: only models of the zoo share a classifier; found one with {other!r}")
        tensors |= {f"{CLASSIFIER}{name}": tensor for name, tensor in classifier_weights(other).items()}
    return completed(tensors)


def _own_tensors(folder: Path, described: Mapping[str, Any]) -> dict[str, Tensor]:
    """What the checkpoint's own file holds, verified."""
    path = folder / WEIGHTS
    if not path.is_file():
        raise InputError(f"no checkpoint in {folder}: {path.name} is missing")
    try:
        weights = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    if hashlib.sha256(weights).hexdigest() != described.get("own_sha256" if SHARED in described else "weights_sha256"):
        raise InputError(f"{path} is damaged, or was not saved together with the {DESCRIPTION} beside it")
    try:
        return deserialize(weights)
    except SafetensorError as error:
        raise InputError(f"{path} is no safetensors file: {error}") from None


def completed(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of a model, with those that older ones lack as in a model that is not calibrated."""
    like = tensors.get("mean", torch.zeros(()))
    unknown = {"source_certainty": torch.full((2, 2), -1.0).to(like)}
    if "branch.source_score" in tensors:
        unknown["branch.shuffled_score"] = torch.tensor(-1.0).to(tensors["branch.source_score"])
    return {**unknown, **tensors}
