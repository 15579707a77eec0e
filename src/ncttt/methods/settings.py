"""A method as JSON values and back: its name in METHODS and its hyper-parameters."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from ncttt.base.errors import InputError, nearest
from ncttt.methods.base import Method
from ncttt.methods.registry import METHODS, added_to, name_of
from ncttt.noise.families import NOISES, Noise

Settings = Mapping[str, Any]


def settings_of(method: Method) -> dict[str, Any]:
    """A method as JSON values: its name in METHODS and its hyper-parameters.

    >>> from ncttt.methods.tent import Tent
    >>> settings_of(Tent(lr=0.01))["lr"]
    0.01
    """
    settings = {field.name: getattr(method, field.name) for field in dataclasses.fields(method)}
    return {"name": name_of(type(method))} | {key: _to_json(value) for key, value in settings.items()}


def method_from(settings: Settings, **changed: Any) -> Method:
    """The method that `settings_of` described, with some settings changed."""
    settings = {**settings, **changed}
    name = settings.pop("name", None)
    kind = METHODS.find(name)
    known = {field.name for field in dataclasses.fields(kind)}
    for key in settings.keys() - known:
        raise InputError(f"method {name!r} has no setting {key!r}{nearest(key, known)}")
    try:
        return kind(**{key: _from_json(value) for key, value in settings.items()})
    except (TypeError, AttributeError, OverflowError) as error:  # a value that the method cannot even check
        raise InputError(f"the settings {changed or settings} of {name} cannot be: {error}") from None


def method_for(own: Method, name: str | None = None, settings: Settings | None = None) -> Method:
    """The method of that name with those settings; a model's own, where it is that one, keeps its other settings."""
    described = settings_of(own)
    if name not in (None, described["name"]):
        described = {"name": name}
    return method_from(described, **(settings or {}))


def as_recorded(settings: Settings) -> dict[str, Any]:
    """Settings that a file was written with, those included that the method got later, as they were then."""
    return {**_added(settings), **settings}


def as_first_recorded(settings: Settings) -> dict[str, Any]:
    """Settings without those that the method got later and that are as they were before: what older rows have."""
    added = _added(settings)
    return {name: value for name, value in settings.items() if name not in added or added[name] != value}


def _added(settings: Settings) -> Settings:
    return added_to(str(settings.get("name")))


def _to_json(value: Any) -> Any:
    if not isinstance(value, Noise):
        return value
    names = [name for name, kind in NOISES.items() if kind is type(value)]
    if not names or not dataclasses.is_dataclass(value):
        raise InputError(f"only the noise families of ncttt.noise.NOISES can be saved; found {value!r}")
    return {"family": names[0], **dataclasses.asdict(value)}


def _from_json(value: Any) -> Any:
    if isinstance(value, dict) and value.get("family") in NOISES:
        return NOISES[value["family"]](**{k: v for k, v in value.items() if k != "family"})
    return tuple(value) if isinstance(value, list) else value
