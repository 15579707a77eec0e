"""A method by its name, for a model that is there."""

from collections.abc import Mapping
from typing import Any

from ncttt.benchmark.cells import made_from
from ncttt.branched import Branched
from ncttt.checkpoint import method_settings
from ncttt.errors import InputError, nearest
from ncttt.methods import METHODS, Method


def chosen_method(model: Branched, name: str | None = None, settings: Mapping[str, Any] | None = None) -> Method:
    """The method of that name with those settings; the model's own, where it is that one, keeps its other settings."""
    own = method_settings(model.method)
    name = name or str(own["name"])
    if name not in METHODS:
        raise InputError(f"no method {name!r}{nearest(name, METHODS)}")
    return made_from(own if own["name"] == name else {"name": name}, dict(settings or {}))
