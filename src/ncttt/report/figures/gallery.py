"""Every figure by name, and drawing them into files.

A figure is a file of this package: the first line of its docstring says what it shows, `PLACE` where the list has it,
`NEEDS` what it cannot do without, and `make(request)` draws it. They are read without importing the files, so that a
list needs neither torch nor matplotlib. Other packages announce such functions by entry points of the group
`ncttt.figures`; `module:function` names one without.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ncttt.base.declarations import declarations
from ncttt.base.errors import InputError, nearest
from ncttt.base.registry import Registry, load_address
from ncttt.report import figures
from ncttt.report.figures.shared.request import Request

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ALL: Final = "all"
HOW: Final = {
    "rows": "--rows FILE, the store of `ncttt bench --config digits` or a CSV of it",
    "trials": "--trials FILE, from `ncttt tune --config layer-sigma --json > FILE`",
}


class Exhibit(NamedTuple):
    """A figure of this package: its place in lists, its name, what it shows, and what it needs.

    Images and a model are there for digits without being asked for.
    """

    place: float
    name: str
    shows: str
    needs: str


class Drawing(NamedTuple):
    """A figure that was asked for: its files, or why it was left out."""

    name: str
    files: tuple[Path, ...] = ()
    left_out: str = ""


@lru_cache(maxsize=1)
def exhibits() -> dict[str, Exhibit]:
    """The figures of this package by name, in the order of lists."""
    each = [
        Exhibit(found.values["PLACE"], found.name, _shows(found.docstring), found.values.get("NEEDS", ""))
        for found in declarations("ncttt.report.figures")
        if "PLACE" in found.values
    ]
    return {exhibit.name: exhibit for exhibit in sorted(each)}


def _shows(docstring: str) -> str:
    first = docstring.splitlines()[0].removesuffix(".")
    return first[0].lower() + first[1:]


def _built_in() -> dict[str, Any]:
    return {name: partial(load_address, f"ncttt.report.figures.{name}:make") for name in exhibits()}


def _check(name: str, thing: Any) -> None:
    if not callable(thing):
        raise InputError(f"{name!r} is no figure: expected a function that draws a request; found {thing!r}")


FIGURES: Registry[Callable[[Request], Figure]] = Registry("figure", "ncttt.figures", _built_in, _check)


def listing() -> str:
    """A line for each figure: its name, what it shows, what it needs.

    >>> print(listing().splitlines()[-4])
    reliability: confidence against accuracy [model]
    """
    return "\n".join(_listed(name) for name in FIGURES)


def _listed(name: str) -> str:
    if name not in exhibits():
        return f"{name}: of another package"
    exhibit = exhibits()[name]
    return f"{name}: {exhibit.shows}" + (f" [{exhibit.needs}]" if exhibit.needs else "")


def chosen(names: Sequence[str]) -> list[str]:
    """The names that were asked for, each once; `all` is every one of them.

    >>> chosen(["beta", "field", "beta"])
    ['beta', 'field']
    """
    known = [*FIGURES, ALL]
    if not names:
        raise InputError(f"name a figure{nearest('', known)}")
    for name in names:
        if name not in known and ":" not in name:
            raise InputError(f"no figure {name!r}{nearest(name, known)}")
    every = list(FIGURES) if ALL in names else []
    return [name for name in dict.fromkeys([*every, *names]) if name != ALL]


def draw_figures(
    names: Sequence[str],
    out: str | Path = "runs/figures",
    request: Request | None = None,
    *,
    tell: Callable[[Drawing], None] = lambda drawing: None,
    **fields: Any,
) -> list[Drawing]:
    """Draw figures by name, each as SVG and PNG in the folder `out`, from a request or from its fields.

    Of `all`, those that the request lacks something for are left out. `tell` is called with each as soon as it is done.
    """
    request = request or Request(**fields)
    wanted = chosen(names)
    _ = request.chosen_rows, request.read_trials  # a file that is wrong is told before anything is drawn
    drawings = []
    for name in wanted:
        try:
            drawing = Drawing(name, figures.save(draw(name, request), out, name.replace(":", ".")))
        except InputError as error:
            if ALL not in names:
                raise
            drawing = Drawing(name, left_out=str(error))
        tell(drawing)
        drawings.append(drawing)
    return drawings


def draw(name: str, request: Request) -> Figure:
    """One figure by its name or its address."""
    make = FIGURES.find(name)
    needs = getattr(sys.modules.get(make.__module__), "NEEDS", "")
    if needs in HOW and getattr(request, needs) is None:
        raise InputError(f"the figure {name} needs {needs}: {HOW[needs]}")
    return make(request)
