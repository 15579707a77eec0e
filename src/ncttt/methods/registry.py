"""METHODS: every method by name, those of other packages and of the user's own files included.

A method's file says by class variables what it is called, what tables call it and where it stands in them. They are
read without importing the file, so that listings and reports need no torch.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ncttt.base.declarations import declarations
from ncttt.base.errors import InputError
from ncttt.base.registry import Loader, Registry, load_address

if TYPE_CHECKING:
    from ncttt.methods.base import Method


class Listing(NamedTuple):
    """Where a method stands in tables, what they call it, its address, the settings that it got later, its needs."""

    place: float
    name: str
    title: str
    address: str
    added: Mapping[str, Any] = {}
    needs: str = ""


# Settings that every method got later, as they were before.
ADDED_TO_ALL: Mapping[str, Any] = {"crop": 1.0, "gather": 0, "mirror_mean": False}
STRANGER = Listing(float("inf"), "", "", "")


@lru_cache(maxsize=1)
def listings() -> dict[str, Listing]:
    """The methods of this package by name, in the order of tables."""
    each = [
        Listing(
            values.get("place", float("inf")),
            values["name"],
            values.get("title", values["name"]),
            f"{declared.module}:{kind}",
            values.get("added", {}),
            values.get("needs") or needs_by_default(values.get("has_branch", False), values.get("trains", "joint")),
        )
        for declared in declarations("ncttt.methods")
        for kind, values in declared.classes.items()
        if "name" in values
    ]
    return {listing.name: listing for listing in sorted(each)}


def _built_in() -> dict[str, Loader[type[Method]]]:
    return {name: partial(load_address, listing.address) for name, listing in listings().items()}


def _check(name: str, thing: Any) -> None:
    from ncttt.methods.base import Method  # torch, which a list of names does without

    if not (isinstance(thing, type) and issubclass(thing, Method)):
        raise InputError(f"{name!r} is no method: expected a subclass of ncttt.Method; found {thing!r}")


METHODS: Registry[type[Method]] = Registry("method", "ncttt.methods", _built_in, _check)


def title_of(name: str) -> str:
    """What tables call a method, or whatever is called so.

    >>> title_of("ttt_plus"), title_of("my method")
    ('TTT++', 'my method')
    """
    return _listed(name).title or name


def place_of(name: str) -> float:
    """A key to sort methods by: their places in tables, strangers last."""
    return _listed(name).place


def added_to(name: str) -> Mapping[str, Any]:
    """The settings that a method got after rows and checkpoints had been made without them, as they were then.

    >>> added_to("clust3")
    {'crop': 1.0, 'gather': 0, 'mirror_mean': False, 'reduction': 'mean'}
    """
    return {**ADDED_TO_ALL, **_listed(name).added}


def needs_of(name: str) -> str:
    """What a method needs of the source beside the classifier, in plain words; empty where it is not known.

    >>> needs_of("tent"), needs_of("nc_ttt"), needs_of("my method")
    ('nothing', 'own training', '')
    """
    return _listed(name).needs


def needs_by_default(has_branch: bool, trains: str, otherwise: str = "nothing") -> str:
    """What a method needs that does not say so: a branch that is trained needs a training of its own."""
    return "own training" if has_branch and trains != "nothing" else otherwise


def name_of(kind: type[Method]) -> str:
    """The name by which METHODS finds a method: its own, or its address."""
    if METHODS.get(getattr(kind, "name", "")) is kind:
        return kind.name
    if kind.__module__ == "__main__" or kind.__module__ not in sys.modules or "<locals>" in kind.__qualname__:
        raise InputError(
            f"{kind.__name__} has no address from which it could be loaded again: put it into a module of its own"
        )
    return f"{kind.__module__}:{kind.__qualname__}"


def _listed(name: str) -> Listing | type[Method]:
    """A row of a benchmark may name a method whose module is not here: a title is no reason to import it."""
    if name in listings():
        return listings()[name]
    module, _, address = name.partition(":")
    return STRANGER if address and module not in sys.modules else METHODS.get(name, STRANGER)
