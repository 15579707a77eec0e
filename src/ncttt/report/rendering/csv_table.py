"""A table as CSV: every number as exact as it is known, deviations and intervals in columns of their own."""

from __future__ import annotations

from ncttt.base.csv_files import csv_text
from ncttt.report.table import Cell, Table

PARTS = {
    "": lambda number: number.mean,
    " std": lambda number: number.deviation,
    " low": lambda number: number.interval and number.interval[0],
    " high": lambda number: number.interval and number.interval[1],
}


def as_csv(table: Table) -> str:
    """The cells of the table as CSV; what is shown in bold, marked or noted is left out."""
    shown = [
        (place, part) for place in range(len(table.columns)) for part in PARTS if part == "" or _has(table, place, part)
    ]
    names = [table.corner, *(table.columns[place] + part for place, part in shown)]
    lines = ([line.name, *(_value(line.cells[place], part) for place, part in shown)] for line in table.all_lines)
    return csv_text(names, lines)


def _has(table: Table, place: int, part: str) -> bool:
    return any(_value(line.cells[place], part) is not None for line in table.all_lines)


def _value(cell: Cell, part: str) -> float | str | None:
    if cell is None or isinstance(cell, str):
        return cell if part == "" else None
    return PARTS[part](cell)
