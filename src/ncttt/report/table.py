"""A table as numbers: what is shown, which is the best, what is said below. How it looks is another matter."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ncttt.base.errors import InputError

MISSING = "\N{EN DASH}"
TIE = 1e-9  # percentage points; accuracies of real sets are either equal or further apart


@dataclass(frozen=True)
class Number:
    """A number of a table, in percent, unrounded.

    `deviation` is that over seeds, `interval` its confidence interval; `signed` shows the sign of a gain, too; `marks`
    are the numbers of footnotes, from 1; `star` marks a difference whose interval leaves out zero.
    """

    mean: float
    deviation: float | None = None
    interval: tuple[float, float] | None = None
    signed: bool = False
    bold: bool = False
    star: bool = False
    marks: tuple[int, ...] = ()


@dataclass(frozen=True)
class Line:
    """A name and a number for each column, None where nothing was measured."""

    name: str
    numbers: tuple[Number | None, ...]


@dataclass(frozen=True)
class Table:
    """Lines of numbers under the names of their columns; `total` is the line below the rule.

    `footnotes` are those that numbers point to; `notes` belong to the whole table.
    """

    title: str
    corner: str
    columns: tuple[str, ...]
    lines: tuple[Line, ...]
    total: Line | None = None
    footnotes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for line in self.all_lines:
            if len(line.numbers) != len(self.columns):
                raise InputError(
                    f"a line needs a number for each of {len(self.columns)} columns; "
                    f"{line.name!r} has {len(line.numbers)}"
                )

    @property
    def all_lines(self) -> tuple[Line, ...]:
        """The lines, the total last."""
        return self.lines if self.total is None else (*self.lines, self.total)


def number_text(number: Number | None) -> str:
    """A number as it is read: two decimals, deviation or interval, star.

    >>> number_text(Number(1.234, interval=(0.5, 2.0), signed=True, star=True))
    '+1.23 [+0.50, +2.00] *'
    """
    if number is None:
        return MISSING
    sign = "+" if number.signed else ""
    text = f"{number.mean:{sign}.2f}"
    if number.deviation is not None:
        text += f" ± {number.deviation:.2f}"
    if number.interval is not None:
        text += f" [{number.interval[0]:{sign}.2f}, {number.interval[1]:{sign}.2f}]"
    return text + " *" * number.star


def best_in_bold(numbers: Sequence[Number | None]) -> tuple[Number | None, ...]:
    """The highest of several numbers in bold, all of them if they tie; what is shown rounded does not matter.

    >>> [number.bold for number in best_in_bold([Number(70.001), Number(70.004)])]
    [False, True]
    """
    means = [number.mean for number in numbers if number is not None]
    if len(means) < 2:
        return tuple(numbers)
    best = max(means)
    return tuple(number and replace(number, bold=best - number.mean <= TIE) for number in numbers)


def average(values: Iterable[float]) -> float:
    """The mean, the same in whatever order the values come.

    >>> average([0.1, 0.7, 0.3]) == average([0.3, 0.1, 0.7])
    True
    """
    found = list(values)
    return math.fsum(found) / len(found)


def deviation(values: Sequence[float]) -> float | None:
    """The sample standard deviation, where there are several values.

    >>> deviation([1.0, 2.0, 3.0])
    1.0
    """
    if len(values) < 2:
        return None
    middle = average(values)
    return math.sqrt(math.fsum((value - middle) ** 2 for value in values) / (len(values) - 1))


def transposed(table: Table, corner: str) -> Table:
    """Lines as columns and columns as lines; a total becomes the last column."""
    lines = zip(table.columns, zip(*(line.numbers for line in table.all_lines), strict=True), strict=True)
    return replace(
        table,
        corner=corner,
        columns=tuple(line.name for line in table.all_lines),
        lines=tuple(Line(name, numbers) for name, numbers in lines),
        total=None,
    )
