"""Checkpoints: a folder with `model.safetensors` and `model.json`; nothing in it is ever executed."""

import hashlib
import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save as serialize
from torch import Tensor, nn

from ncttt.base.errors import InputError
from ncttt.base.files import replace_files
from ncttt.base.seeding import seeded_alone
from ncttt.base.words import kind_of
from ncttt.methods.settings import method_from, settings_of
from ncttt.model.branched import Branched
from ncttt.model.fit import check_fit, check_sound, must_be_finite
from ncttt.zoo.description import FORMAT, check_description
from ncttt.zoo.hub import DESCRIPTION, WEIGHTS
from ncttt.zoo.rebuilding import architecture_of, made
from ncttt.zoo.stored import checkpoint_folder, description, read_tensors, trained_method

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
    tensors = read_tensors(folder, described)
    with seeded_alone(0):  # the weights drawn here are overwritten: the caller's random numbers are not spent on them
        model = made(described, method, classifier, tensors, folder)
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
        "architecture": architecture_of(model.classifier),
        "layer": model.layer,
        "method": settings_of(model.method),
        "preprocessing": normalisation if model.normalises else {"mean": None, "std": None},
        "input_shape": model.input_shape,
        "resize": model.resize,
        "classes": model.classes,
        "channels_last": any(_is_channels_last(p) for p in model.parameters()),
    }


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
