"""What a corruption is, and all of them by name: those of this package, of other packages and of the user's own files.

A corruption is a function decorated with its constants. Those of this package are found by reading its files, not by
importing them: scipy takes a while, and a list of names does without.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from ncttt.base.errors import InputError, nearest
from ncttt.base.registry import Registry, load_address
from ncttt.data.files.arrays import SEVERITIES

TABLES: Final = ("cifar", "imagenet")  # for images of 32 and of 224 pixels
# Between 32 and 224 nothing is published that is common to all 19; 96 lies near their geometric mean (85), so a
# 64-pixel image is still treated as small: the ImageNet constants would shift and blur it by half its width.
SMALL: Final = 96
FILES: Final = ("noise", "blur", "weather", "spatter", "digital")  # in the benchmark's order, as are their functions
CLEAN: Final = "clean"

Levels = tuple[tuple[float, ...], ...]  # for each severity what the function takes


@dataclass(frozen=True)
class Corruption:
    """A function (images uint8 (N, H, W, 3), draws, *constants) -> uint8 of the same shape, and its constants."""

    function: Callable[..., np.ndarray]
    tables: Mapping[str, Levels]
    extra: bool = False
    textures: Callable[..., Any] | None = None

    def __call__(self, images: np.ndarray, draws: Any, *constants: Any) -> np.ndarray:
        return self.function(images, draws, *constants)


def corruption(
    *, cifar: Levels, imagenet: Levels, extra: bool = False, textures: Callable[..., Any] | None = None
) -> Callable[[Callable[..., np.ndarray]], Corruption]:
    """Make a function a corruption, with its constants for severities 1 to 5 on small and on large images.

    `extra` says that it is none of the fifteen of the benchmark. `textures`, called with (height, width, table, seed,
    frost), gives what the function takes after its constants.
    """
    tables = {"cifar": cifar, "imagenet": imagenet}
    for name, levels in tables.items():
        if len(levels) != len(SEVERITIES):
            raise InputError(f"{len(levels)} levels of {name} constants; expected one for each severity from 1 to 5")
    return lambda function: Corruption(function, tables, extra, textures)


class _Declared(NamedTuple):
    name: str
    address: str
    extra: bool


def _declared() -> list[_Declared]:
    """The decorated functions of this package, the fifteen first."""
    files = sorted(Path(__file__).parent.glob("[!_]*.py"), key=lambda file: (_place(file.stem), file.stem))
    functions = [each for file in files for each in _declared_in(file)]
    return sorted(functions, key=lambda each: each.extra)


def _place(stem: str) -> int:
    return FILES.index(stem) if stem in FILES else len(FILES)


def _declared_in(file: Path) -> Iterable[_Declared]:
    text = file.read_text(encoding="utf-8")
    for node in ast.parse(text).body if "\n@corruption(" in text else ():
        calls = [mark for mark in getattr(node, "decorator_list", ()) if isinstance(mark, ast.Call)]
        for call in calls:
            if isinstance(node, ast.FunctionDef) and ast.unparse(call.func) == "corruption":
                extra = any(keyword.arg == "extra" for keyword in call.keywords)
                yield _Declared(node.name, f"{__package__}.{file.stem}:{node.name}", extra)


def _check(name: str, thing: Any) -> None:
    if not isinstance(thing, Corruption):
        raise InputError(
            f"{name!r} is no corruption: expected a function decorated with "
            f"@ncttt.data.corruptions.corruption(cifar=..., imagenet=...); found {thing!r}"
        )


_DECLARED: Final = _declared()
CORRUPTIONS: Final = tuple(each.name for each in _DECLARED if not each.extra)
EXTRA: Final = tuple(each.name for each in _DECLARED if each.extra)
BY_NAME: Registry[Corruption] = Registry(
    "corruption",
    "ncttt.corruptions",
    lambda: {each.name: partial(load_address, each.address) for each in _DECLARED},
    _check,
)
GROUPS: Final = {"all": CORRUPTIONS, "extra": EXTRA}


def expand_corruptions(names: str | Iterable[str], *, clean: bool = True) -> list[str]:
    """Corruptions by their names, those of a group one by one; a text may hold several, separated by commas.

    `all` are the fifteen of the benchmark, `extra` the four others; `clean` stands for no corruption, where it may.

    >>> expand_corruptions("fog, extra")
    ['fog', 'speckle_noise', 'gaussian_blur', 'spatter', 'saturate']
    """
    given = [part.strip() for part in names.split(",")] if isinstance(names, str) else list(names)
    expanded = [name for word in given for name in (GROUPS.get(word, (word,)) if isinstance(word, str) else (word,))]
    words = [CLEAN, *GROUPS] if clean else list(GROUPS)
    for name in expanded:
        if name not in words:
            find_corruption(name, [*words, *BY_NAME])
        if expanded.count(name) > 1:
            raise InputError(f"corruption {name!r} is named twice")
    return expanded


def find_corruption(name: str, names: Iterable[str] = BY_NAME) -> Corruption:
    """The corruption of that name; else an `InputError` that gives the nearest of `names`."""
    if name == "benchmark":
        raise InputError("no corruption 'benchmark': the fifteen of the benchmark are now called 'all'")
    try:
        return BY_NAME[name]
    except (KeyError, TypeError):
        raise InputError(f"no corruption {name!r}{nearest(str(name), names)}") from None


def table_for(height: int, width: int, constants: str | None = None) -> str:
    """The name of the table of constants for images of this size, unless one is asked for by name.

    >>> table_for(32, 32), table_for(224, 160), table_for(32, 32, "imagenet")
    ('cifar', 'imagenet', 'imagenet')
    """
    if constants is None:
        return "cifar" if min(height, width) < SMALL else "imagenet"
    if not isinstance(constants, str) or constants not in TABLES:
        raise InputError(f"no constants {constants!r}{nearest(str(constants), TABLES)}")
    return constants
