"""How the lines of a page look: a colour for each method, a form for each of its variants, the same in all charts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ncttt.report.page.lines import MethodLine, Setup
from ncttt.report.palette import OF_METHODS, SERIES

# Names of style sheet colours for what does not learn; all others are series-1 to series-6.
STILL = {"source": "source", "ptbn": "ptbn"}


@dataclass(frozen=True)
class Look:
    """A colour by its name in the style sheet, and the number of the form: marker and dashes."""

    colour: str
    form: int


def looks_of(setups: Iterable[Setup]) -> dict[str, Look]:
    """The look of every line by its name.

    >>> looks_of([])
    {}
    """
    lines = {line.name: line for setup in setups for line in setup.lines}
    colours = _colours([line.column.method for line in lines.values()])
    taken: dict[str, int] = {}
    looks = {}
    for name in sorted(lines, key=lambda name: (lines[name].repeated, _is_variant(lines[name]))):
        colour = colours[lines[name].column.method]
        looks[name] = Look(colour, taken.setdefault(colour, 0))
        taken[colour] += 1
    return looks


def _is_variant(line: MethodLine) -> bool:
    return line.column.label != line.column.method


def _colours(methods: Sequence[str]) -> dict[str, str]:
    known = {**{name: f"series-{place + 1}" for name, place in OF_METHODS.items()}, **STILL}
    used = {known[name] for name in methods if name in known}
    every = [f"series-{place + 1}" for place in range(len(SERIES))]
    free = [colour for colour in every if colour not in used] or every[-1:]
    strangers = [name for name in dict.fromkeys(methods) if name not in known]
    return known | {name: free[place % len(free)] for place, name in enumerate(strangers)}
