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
    `InputError` for what is not of this kind.

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
            if name in self._loaders:
                thing = self._loaders[name]()
            elif isinstance(name, str) and ":" in name:
                thing = load_address(name)
            else:
                raise KeyError(name)
            self._check(name, thing)
            self._loaded[name] = thing
        return self._loaded[name]

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

    @cached_property
    def _loaders(self) -> dict[str, Loader[Thing]]:
        # What comes with this package goes before: nobody may replace it unnoticed.
        announced = {point.name: point.load for point in entry_points(group=self.group)}
        built_in = dict(self._built_in())
        return {**built_in, **{name: load for name, load in announced.items() if name not in built_in}}


def load_address(address: str) -> Any:
    """What `module:Name` names; modules are looked for in the current folder, too."""
    module, _, name = address.partition(":")
    try:
        return _attribute(import_module(module), name)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0] or "" in sys.path:
            raise InputError(f"cannot load {address!r}: {error}") from None
    except (ImportError, AttributeError, ValueError, SyntaxError) as error:
        raise InputError(f"cannot load {address!r}: {error}") from None
    sys.path.insert(0, "")  # a command installed by pip does not look into the current folder
    return load_address(address)


def _attribute(module: Any, names: str) -> Any:
    for name in names.split("."):
        module = getattr(module, name)
    return module
