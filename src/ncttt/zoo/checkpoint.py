"""Checkpoints: a folder with `model.safetensors` and `model.json`; nothing in it is ever executed."""

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
from torch import Tensor, nn

from ncttt.base.errors import InputError, nearest
from ncttt.base.files import replace_files, waiting
from ncttt.base.seeding import seeded_alone
from ncttt.base.words import kind_of
from ncttt.methods.base import Method
from ncttt.methods.settings import method_from, settings_of
from ncttt.model.branched import Branched, attach
from ncttt.model.fit import CLASSIFIER, check_fit, check_sound, must_be_finite
from ncttt.nets.catalogue import rebuild
from ncttt.zoo.description import FORMAT, SHARED, check_description, read_description
from ncttt.zoo.hub import DESCRIPTION, WEIGHTS, fetch, is_hub_name
from ncttt.zoo.shipped import HOME, names

OWN = ("mean", "std", "source_certainty", "branch.")  # the buffers of a model that are not its classifier's


def save(model: Branched, folder: str | Path) -> None:
    """Write a model to a folder; for `load` both files change, or neither does.

    The architecture is stored for networks that `ncttt.models` built; your own is handed to `load` as a module.
    """
    if hasattr(model, "bake"):  # an Adapter, whose room is above this one
        raise InputError(
            "a checkpoint would lose what an adapter has learned: save the state of the adapted network, "
            "adapter.bake(), or the state of the stream, adapter.state_dict(), by torch.save"
        )
    if not isinstance(model, Branched):
        raise InputError(f"save takes a model made by ncttt.attach; found {kind_of(model)}")
    described, weights = describe(model), serialize(_tensors(model))
    check_description(described, "the model")
    described["weights_sha256"] = hashlib.sha256(weights).hexdigest()
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(described, indent=2) + "\n"
    replace_files({folder / WEIGHTS: weights, folder / DESCRIPTION: text.encode()})


@torch.inference_mode(False)
def load(folder: str | Path, classifier: nn.Module | None = None) -> Branched:
    """Read a model from a folder, or from the zoo by its name; it predicts bit for bit as the saved one did.

    `hf://user/name` fetches it from that repository of the Hugging Face hub, if it is not in the hub's cache yet.
    `classifier` is a network of your own architecture, whose weights are overwritten.
    """
    folder, described = checkpoint_folder(folder), description(folder)
    method = method_from(trained_method(folder))
    if method.needs_training() and described["layer"] is None:
        raise InputError(f"{folder / 'model.json'}, layer: found null; {method.name} expected the name of one")
    tensors = _read_tensors(folder, described)
    with seeded_alone(
        0
    ):  # the weights drawn here are overwritten, so the caller's random numbers must not be spent on them
        model = _made(described, method, classifier, tensors, folder)
    check_fit(model.state_dict(), tensors, f"the checkpoint in {folder}")
    check_sound(tensors, must_be_finite(model, OWN), f"{folder / WEIGHTS}")
    model.load_state_dict(tensors)
    model.classes = None if described.get("classes") is None else tuple(described["classes"])
    model.resize = described["resize"]
    if described["channels_last"]:
        model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return model.eval()


def describe(model: Branched) -> dict[str, Any]:
    """Everything but the weights, as JSON values."""
    normalisation = {name: getattr(model, name).flatten().tolist() for name in ("mean", "std")}
    return {
        "format": FORMAT,
        "architecture": _architecture(model.classifier),
        "layer": model.layer,
        "method": settings_of(model.method),
        "preprocessing": normalisation if model.normalises else {"mean": None, "std": None},
        "input_shape": model.input_shape,
        "resize": model.resize,
        "classes": model.classes,
        "channels_last": any(_is_channels_last(p) for p in model.parameters()),
    }


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
        _read_tensors(folder, described)
    except InputError as error:
        raise InputError(str(error).replace(str(folder), called or str(folder))) from None
    return described


def classifier_weights(folder: str | Path) -> dict[str, Tensor]:
    """The tensors of a checkpoint's classifier by their names in it, whatever the network is."""
    folder = checkpoint_folder(folder)
    tensors = _read_tensors(folder, description(folder))
    return {name.removeprefix(CLASSIFIER): tensor for name, tensor in tensors.items() if name.startswith(CLASSIFIER)}


def _layer(value: str | list[str] | None) -> str | tuple[str, ...] | None:
    return tuple(value) if isinstance(value, list) else value


def _tensors(model: Branched) -> dict[str, Tensor]:
    # Cloned where two names share memory (tied weights), which the format does not allow.
    seen: set[int] = set()
    tensors = {}
    for name, tensor in model.state_dict().items():
        tensor = tensor.detach().contiguous()
        storage = tensor.untyped_storage().data_ptr()
        tensors[name] = tensor.clone() if storage in seen else tensor
        seen.add(storage)
    return tensors


def _is_channels_last(tensor: Tensor) -> bool:
    return tensor.ndim == 4 and not tensor.is_contiguous() and tensor.is_contiguous(memory_format=torch.channels_last)


def _architecture(net: nn.Module) -> dict[str, Any] | None:
    """How `ncttt.models` made a network, or None for a user's own and for one that was changed since."""
    made = getattr(net, "architecture", None)
    if not isinstance(made, dict):
        return None
    try:
        with torch.device("meta"):
            again = rebuild(made)
    except InputError:
        return None
    return made if repr(again) == repr(net) and _shapes(again) == _shapes(net) else None


def _shapes(net: nn.Module) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in net.state_dict().items()}


def _made(
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


def _read_tensors(folder: Path, described: Mapping[str, Any]) -> dict[str, Tensor]:
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
