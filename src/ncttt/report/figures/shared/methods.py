"""The lines of many methods in one figure: which are shown, how each looks, and what is said of the others."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.artist import Artist
from matplotlib.figure import Figure

from ncttt.report.figures.shared.selection import Row
from ncttt.report.figures.shared.style import GREY, INK, legend_below
from ncttt.report.names import Column, column_of
from ncttt.report.page.names import is_repeated, line_names, model_names, short_data
from ncttt.report.palette import SERIES
from ncttt.report.shares import OWN_NORM

MOST = 8  # lines that a reader can tell apart
IN_A_ROW = 4  # of a legend
WIDE, NO_BREAK = 112, "\N{NO-BREAK SPACE}"  # letters of a caption in a line
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
STILL: dict[str, dict[str, Any]] = {
    "source": {"color": INK, "ls": (0, (5, 2)), "lw": 1.5},
    "ptbn": {"color": GREY, "ls": (0, (1, 1)), "lw": 2.2},
}


@dataclass(frozen=True)
class Shown:
    """The methods of a figure in the order of tables: their names, their looks, and the names of those left out."""

    names: dict[Column, str]
    looks: dict[Column, dict[str, Any]]
    left_out: tuple[str, ...]


def main_rows(rows: Iterable[Row]) -> list[Row]:
    """The rows without those of a method on a further checkpoint, where most methods share another one."""
    rows = list(rows)
    columns = list(dict.fromkeys(column_of(row) for row in rows))
    return [row for row in rows if not is_repeated(column_of(row), columns)]


def shown_methods(accuracy: Mapping[Column, float]) -> Shown:
    """Of methods with their mean accuracy: source and batch statistics always, and the best of the others."""
    names = line_names(accuracy, model_names(accuracy))
    still = [column for column in names if column.method in STILL]
    others = sorted((column for column in names if column not in still), key=lambda column: -accuracy[column])
    few = others[: max(0, MOST - len(still))]
    left_out = tuple(f"{names[column]} {accuracy[column]:.1f}{NO_BREAK}%" for column in others[len(few) :])
    kept = {column: name for column, name in names.items() if column in still or column in few}
    return Shown(kept, _looks(list(kept)), left_out)


def _looks(columns: Sequence[Column]) -> dict[Column, dict[str, Any]]:
    moving = [column for column in columns if column.method not in OWN_NORM]
    marked = {
        column: {"color": SERIES[place % len(SERIES)], "marker": MARKERS[place % len(MARKERS)], "ms": 5, "zorder": 3}
        for place, column in enumerate(moving)
    }
    return {column: marked.get(column) or STILL[column.method] for column in columns}


def explain(figure: Figure, handles: Sequence[Artist], names: Sequence[str], left_out: Sequence[str]) -> None:
    """A legend below the figure, which also names the methods that the figure does not show."""
    text = f"Left out, less accurate: {', '.join(left_out)}."
    title = "\n".join(textwrap.wrap(text, WIDE)) if left_out else None
    legend_below(figure, handles, names, columns=min(IN_A_ROW, len(names)), title=title)


def setup_title(row: Row) -> str:
    """What all rows of a figure have in common: data, severity and protocol."""
    severity = [f"severity {row['severity']}"] if row.get("severity") else []
    return ", ".join([short_data(str(row["data"])), *severity, str(row["protocol"])])
