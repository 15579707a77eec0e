"""Networks of other libraries by name: `timm:resnet18`, `torchvision:resnet18`, `hf:vit`.

The prefix is one of a fixed set and the name goes to that library's own factory, so that no name and no checkpoint can
choose which code runs. Nothing is downloaded unless `pretrained=True` asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NamedTuple

from torch import nn

from ncttt.base.errors import InputError, nearest
from ncttt.nets.transformers_networks import make_transformers

# Settings that name weights or where they lie: a setting must never make a library read or fetch a file.
REFUSED = ("pretrained", "checkpoint", "cache", "weights", "backbone", "use_pretrained", "use_timm")
PLAIN = (str, int, float, bool, type(None))


class Library(NamedTuple):
    """A library of networks: the module to import, the extra that installs it, and how it makes a network.

    `make(module, name, pretrained, settings)` gives the network, and the name and settings that make it again.
    """

    module: str
    extra: str
    make: Callable[[Any, str, bool, dict[str, Any]], tuple[nn.Module, dict[str, Any]]]


def build_from_library(name: str, settings: Mapping[str, Any]) -> nn.Module:
    """The network `library:name`, which remembers how it was made; with random weights unless `pretrained` is set."""
    scheme, _, inner = name.partition(":")
    library, settings = LIBRARIES[scheme], dict(settings)
    pretrained = settings.pop("pretrained", False)
    if not isinstance(pretrained, bool):
        raise InputError(f"pretrained must be true or false; found {pretrained!r}")
    _check_settings(name, settings)
    module = _imported(library, scheme)
    try:
        net, made = library.make(module, inner, pretrained, settings)
    except InputError:
        raise
    except Exception as error:  # whatever the library raises for settings that it does not take
        raise InputError(f"{library.module} cannot make {name!r} with {settings}: {_first_line(error)}") from error
    net.architecture = {**made, "name": f"{scheme}:{made['name']}"}  # type: ignore[assignment]
    return net


def _check_settings(name: str, settings: Mapping[str, Any]) -> None:
    for setting, value in settings.items():
        if setting.startswith(REFUSED):
            raise InputError(
                f"network {name!r} takes no setting {setting!r}: pretrained=True asks for the library's weights, "
                "and a training starts from other ones by start"
            )
        values = value if isinstance(value, list | tuple) else [value]
        if not all(isinstance(part, PLAIN) for part in values):
            raise InputError(f"settings of {name!r} are numbers, texts or lists; found {setting}={value!r}")


def _imported(library: Library, scheme: str) -> Any:
    try:
        return import_module(library.module)
    except Exception as error:  # one that does not fit the installed torch raises anything
        absent = isinstance(error, ModuleNotFoundError) and error.name == library.module
        why = "is not installed" if absent else f"cannot be imported: {_first_line(error)}"
        raise InputError(
            f"networks named {scheme}:... need {library.module}, which {why}; pip install 'ncttt[{library.extra}]'"
        ) from error


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


def _make_timm(timm: Any, name: str, pretrained: bool, settings: dict[str, Any]) -> tuple[nn.Module, dict[str, Any]]:
    if not timm.is_model(name):  # create_model would also take repositories and folders
        raise InputError(f"timm has no network {name!r}{nearest(name, timm.list_models())}")
    return timm.create_model(name, pretrained=pretrained, **settings), {"name": name, **settings}


def _make_torchvision(
    torchvision: Any, name: str, pretrained: bool, settings: dict[str, Any]
) -> tuple[nn.Module, dict[str, Any]]:
    known = torchvision.models.list_models(module=torchvision.models)  # those that classify images
    if name not in known:
        raise InputError(f"torchvision has no classifier {name!r}{nearest(name, known)}")
    net = torchvision.models.get_model(name, weights=None, **settings)
    if pretrained:
        own = net.state_dict()
        weights = torchvision.models.get_model_weights(name).DEFAULT.get_state_dict()  # type: ignore[attr-defined]
        # A last layer of other classes begins anew.
        fits = {key: tensor for key, tensor in weights.items() if key in own and own[key].shape == tensor.shape}
        net.load_state_dict({**own, **fits})
    return net, {"name": name, **settings}


LIBRARIES: dict[str, Library] = {
    "timm": Library("timm", "timm", _make_timm),
    "torchvision": Library("torchvision", "torchvision", _make_torchvision),
    "hf": Library("transformers", "transformers", make_transformers),
}
