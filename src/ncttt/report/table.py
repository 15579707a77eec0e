"""The one Table: cells of numbers and texts, which number is the best, what is said below. How it looks is another
matter."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ncttt.base.errors import InputError

if TYPE_CHECKING:
    from ncttt.benchmark.intervals import Difference

MISSING = "\N{EN DASH}"
TOO_FEW = "too few batches"  # for an interval
TIE = 1e-9  # percentage points; accuracies of real sets are either equal or further apart


@dataclass(frozen=True)
class Number:
    """A number of a table, unrounded; accuracies are in percent.

    `deviation` is that over seeds, `interval` its confidence interval; `signed` shows the sign of a gain, too; `marks`
    are the numbers of footnotes, from 1; `star` marks a difference whose interval leaves out zero; `remark` is shown in
    its place where there is none.
    """

    mean: float
    deviation: float | None = None
    interval: tuple[float, float] | None = None
    signed: bool = False
    bold: bool = False
    star: bool = False
    marks: tuple[int, ...] = ()
    decimals: int = 2
    remark: str = ""


Cell = Number | str | None


@dataclass(frozen=True)
class Line:
    """A name and a cell for each column: a number, a text, or None where nothing was measured."""

    name: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Table:
    """Lines of cells under the names of their columns; `total` is the line below the rule.

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
            if len(line.cells) != len(self.columns):
                raise InputError(
                    f"a line needs a number for each of {len(self.columns)} columns; "
                    f"{line.name!r} has {len(line.cells)}"
                )

    @property
    def all_lines(self) -> tuple[Line, ...]:
        """The lines, the total last."""
        return self.lines if self.total is None else (*self.lines, self.total)

    @property
    def of_texts(self) -> tuple[bool, ...]:
        """Whether each column holds texts, which stand to the left; numbers stand to the right."""
        return tuple(
            any(isinstance(line.cells[place], str) for line in self.all_lines) for place in range(len(self.columns))
        )


def table_of(headers: Sequence[str], body: Iterable[Sequence[Cell]]) -> Table:
    """A table without a title, the first header its corner; the first cell of each line is a text.

    >>> table_of(["method", "accuracy %"], [["tent", Number(70.0)]]).lines[0].name
    'tent'
    """
    lines = [Line(str(first), tuple(cells)) for first, *cells in body]
    return Table("", headers[0], tuple(headers[1:]), tuple(lines))


def cell_text(cell: Cell) -> str:
    """A cell as it is read; of a number its decimals, deviation or interval, and star.

    >>> cell_text(Number(1.234, interval=(0.5, 2.0), signed=True, star=True)), cell_text("as it is")
    ('+1.23 [+0.50, +2.00] *', 'as it is')
    """
    if cell is None or isinstance(cell, str):
        return MISSING if cell is None else cell
    form = f"{'+' if cell.signed else ''}.{cell.decimals}f"
    text = f"{cell.mean:{form}}"
    if cell.deviation is not None:
        text += f" ± {cell.deviation:.{cell.decimals}f}"
    if cell.interval is not None:
        text += f" [{cell.interval[0]:{form}}, {cell.interval[1]:{form}}]"
    return text + f" ({cell.remark})" * bool(cell.remark) + " *" * cell.star


def in_points(gain: Difference, star: bool = False) -> Number:
    """A difference of accuracies in percentage points, with its interval, or that there were too few batches for one.

    >>> from ncttt.benchmark.intervals import Difference
    >>> cell_text(in_points(Difference(0.021, 0.01, 0.032))), cell_text(in_points(Difference(0.021, -1.0, 1.0)))
    ('+2.10 [+1.00, +3.20]', '+2.10 (too few batches)')
    """
    mean, low, high = (100 * float(value) for value in gain)
    if not gain.has_interval:
        return Number(mean, signed=True, remark=TOO_FEW)
    return Number(mean, interval=(low, high), signed=True, star=star)


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
    values = list(values)
    return math.fsum(values) / len(values)


def deviation(values: Sequence[float]) -> float | None:
    """The sample standard deviation, where there are several values.

    >>> deviation([1.0, 2.0, 3.0])
    1.0
    """
    if len(values) < 2:
        return None
    middle = average(values)
    return math.sqrt(math.fsum((value - middle) ** 2 for value in values) / (len(values) - 1))


def over_seeds(values: Sequence[float]) -> Number:
    """Mean and deviation of what was measured with several seeds."""
    return Number(average(values), deviation(values))


def transposed(table: Table, corner: str) -> Table:
    """Lines as columns and columns as lines; a total becomes the last column."""
    lines = zip(table.columns, zip(*(line.cells for line in table.all_lines), strict=True), strict=True)
    return replace(
        table,
        corner=corner,
        columns=tuple(line.name for line in table.all_lines),
        lines=tuple(Line(name, cells) for name, cells in lines),
        total=None,
    )
