"""METHODS: every method by name, those of other packages and of the user's own files included.

A method's file says by class variables what it is called, what tables call it and where it stands in them. They are
read without importing the file, so that listings and reports need no torch.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ncttt.base.declarations import declarations
from ncttt.base.errors import InputError
from ncttt.base.registry import Registry, load_address

if TYPE_CHECKING:
    from ncttt.methods.base import Method


class Listing(NamedTuple):
    """Where a method stands in tables, what they call it, and its address."""

    place: float
    name: str
    title: str
    address: str


@lru_cache(maxsize=1)
def listings() -> dict[str, Listing]:
    """The methods of this package by name, in the order of tables."""
    found = [
        Listing(values["place"], values["name"], values["title"], f"{module}:{kind}")
        for module, _, _, classes, _ in declarations("ncttt.methods")
        for kind, values in classes.items()
        if "name" in values
    ]
    return {listing.name: listing for listing in sorted(found)}


def _built_in() -> dict[str, Any]:
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
    if name in listings():
        return listings()[name].title
    return METHODS[name].title or name if name in METHODS else name


def place_of(name: str) -> float:
    """A key to sort methods by: their places in tables, strangers last."""
    if name in listings():
        return listings()[name].place
    return METHODS[name].place if name in METHODS else float("inf")


def name_of(kind: type[Method]) -> str:
    """The name by which METHODS finds a method: its own, or its address."""
    if METHODS.get(kind.name) is kind:
        return kind.name
    address = f"{kind.__module__}:{kind.__qualname__}"
    if "<locals>" in address or kind.__module__ == "__main__":
        raise InputError(
            f"{kind.__name__} has no address from which it could be loaded again: put it into a module of its own"
        )
    return address
