"""Image classifiers of Hugging Face transformers, by type (`hf:vit`) or from a folder or repository (`hf:./mine`).

A network is recorded by its type and the settings in which it differs from the default of that type, wherever it came
from, so that a checkpoint needs neither folder nor repository. Code of a repository is never run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn

from ncttt.base.errors import InputError, nearest

# Networks of another library inside of these, which would be looked up by a name of theirs.
WRAPPERS = {"timm_wrapper"}
# Follow from other settings.
DERIVED = {"stage_names", "out_features", "out_indices"}


def make_transformers(
    transformers: Any, name: str, pretrained: bool, settings: dict[str, Any]
) -> tuple[nn.Module, dict[str, Any]]:
    """The classifier of a type, or of the configuration in a folder; `pretrained` also takes the weights beside it."""
    settings = dict(settings)
    labels = settings.pop("num_classes", None)
    if "/" not in name:
        return _of_type(transformers, name, pretrained, labels, settings)
    if not Path(name).is_dir() and not pretrained:
        raise InputError(f"there is no folder {name!r}; a repository of that name is fetched with pretrained=True")
    source = {"local_files_only": Path(name).is_dir(), "trust_remote_code": False}
    config = transformers.AutoConfig.from_pretrained(name, **source)
    made = {**_own_settings(transformers, config), **settings}
    labels = config.num_labels if labels is None else labels
    net, made = _of_type(transformers, config.model_type, False, labels, made)
    if pretrained:
        net = transformers.AutoModelForImageClassification.from_pretrained(
            name,
            config=net.config,
            use_safetensors=True,
            ignore_mismatched_sizes=True,  # a last layer of other classes begins anew
            dtype=torch.float32,
            **source,
        )
    return net, made


def _of_type(
    transformers: Any, kind: str, pretrained: bool, labels: int | None, settings: dict[str, Any]
) -> tuple[nn.Module, dict[str, Any]]:
    known = _types(transformers)
    if kind not in known:
        raise InputError(f"transformers has no image classifier of type {kind!r}{nearest(kind, known)}")
    if pretrained:
        raise InputError(f"hf:{kind} is a type without weights; name a folder or a repository, as in hf:user/name")
    own = _fields(transformers, transformers.AutoConfig.for_model(kind))
    for setting in settings.keys() - own.keys():
        raise InputError(f"network 'hf:{kind}' has no setting {setting!r}{nearest(setting, own)}")
    classes = {} if labels is None else {"num_labels": labels}
    config = transformers.AutoConfig.for_model(kind, **settings, **classes)
    config.architectures = [known[kind]]
    net = transformers.AutoModelForImageClassification.from_config(config, trust_remote_code=False)
    return net, {"name": kind, "num_classes": config.num_labels, **settings}


def _types(transformers: Any) -> dict[str, str]:
    """The class of each type of image classifier; the first, where there are several."""
    named = transformers.models.auto.modeling_auto.MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES
    return {
        kind: classes if isinstance(classes, str) else classes[0]
        for kind, classes in named.items()
        if kind not in WRAPPERS
    }


def _own_settings(transformers: Any, config: Any) -> dict[str, Any]:
    """What a configuration says that the default of its type does not."""
    if config.model_type not in _types(transformers):
        raise InputError(f"transformers has no image classifier of type {config.model_type!r}")
    usual = _fields(transformers, transformers.AutoConfig.for_model(config.model_type))
    found = _fields(transformers, config)
    return {name: found[name] for name in usual if name in found and found[name] != usual[name]}


def _fields(transformers: Any, config: Any) -> dict[str, Any]:
    """The settings of this type of network alone: none that every configuration has, such as where code lies."""
    common = transformers.PretrainedConfig().to_dict().keys() | DERIVED
    return {name: value for name, value in config.to_dict().items() if name not in common and name[0] != "_"}
