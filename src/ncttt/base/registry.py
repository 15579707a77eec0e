"""Registries: the things of one kind by name, wherever they come from.

A thing is built in, or an installed package announces it by an entry point of the registry's group, or it is named by
its address, `module:Name`, which is imported from the current folder, too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar

from ncttt.base.errors import InputError, nearest

Thing = TypeVar("Thing")
Loader = Callable[[], Thing]


class Registry(Mapping[str, Thing], Generic[Thing]):
    """Names and things of one kind; a thing is loaded when it is asked for, its name is known before.

    `built_in` gives a loader for each name that comes with this package, in the order of listings. `check` raises an
    `InputError` for what is not of this kind. A package whose thing cannot be loaded spoils no other name.

    >>> numbers = Registry("number", "ncttt.numbers", lambda: {"one": lambda: 1})
    >>> list(numbers), numbers["one"], numbers["math:pi"] > 3, "two" in numbers
    (['one'], 1, True, False)
    """

    def __init__(
        self,
        kind: str,
        group: str,
        built_in: Callable[[], Mapping[str, Loader[Thing]]],
        check: Callable[[str, Any], None] = lambda name, thing: None,
    ):
        self.kind, self.group, self._built_in, self._check = kind, group, built_in, check
        self._loaded: dict[str, Thing] = {}

    def __getitem__(self, name: str) -> Thing:
        if name not in self._loaded:
            thing = self._load(name)
            self._check(name, thing)
            self._loaded[name] = thing
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        """Whether a name is known, whatever loading it gives, or an address can be loaded."""
        if name in self._loaders:
            return True
        try:
            self[str(name)]
        except (KeyError, InputError):
            return False
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(self._loaders)

    def __len__(self) -> int:
        return len(self._loaders)

    def find(self, name: str) -> Thing:
        """The thing of that name; else an `InputError` that names the nearest."""
        try:
            return self[name]
        except KeyError:
            raise InputError(f"no {self.kind} {name!r}{nearest(str(name), self)}") from None

    @property
    def addresses(self) -> list[str]:
        """The addresses that were loaded so far, so that another process can load the same."""
        return [name for name in self._loaded if name not in self._loaders]

    @cached_property
    def announced(self) -> dict[str, str]:
        """The addresses of what other packages announce, by name; nothing of theirs is imported."""
        own = self._built_in()  # goes before: nobody may replace it unnoticed
        points = [point for point in entry_points(group=self.group) if point.name not in own]
        return {point.name: f"{point.module}:{point.attr}" for point in points}

    @cached_property
    def _loaders(self) -> Mapping[str, Loader[Thing] | str]:
        return {**self._built_in(), **self.announced}

    def _load(self, name: str) -> Thing:
        if name not in self._loaders:
            if isinstance(name, str) and ":" in name:
                return load_address(name)
            raise KeyError(name)
        loader = self._loaders[name]
        if not isinstance(loader, str):
            return loader()
        try:
            return load_address(loader)
        except InputError as error:
            raise InputError(f"an installed package announces the {self.kind} {name!r}, but {error}") from error


def load_address(address: str) -> Any:
    """What `module:Name` names; modules are looked for in the current folder, too."""
    module, _, name = address.partition(":")
    try:
        return _attribute(_imported(module), name)
    except Exception as error:  # whatever a stranger's module raises
        raise InputError(f"cannot load {address!r}: {error}") from error


def _imported(module: str) -> Any:
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0] or "" in sys.path:
            raise
    # A command installed by pip does not look into the current folder. Last: what lies there must not hide a library.
    sys.path.append("")
    return import_module(module)


def _attribute(module: Any, names: str) -> Any:
    for name in names.split("."):
        module = getattr(module, name)
    return module
