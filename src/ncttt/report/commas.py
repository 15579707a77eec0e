"""A table as CSV: every number as exact as it is known, deviations and intervals in columns of their own."""

from __future__ import annotations

import csv
from io import StringIO

from ncttt.report.table import Number, Table

PARTS = {
    "": lambda number: number.mean,
    " std": lambda number: number.deviation,
    " low": lambda number: number.interval and number.interval[0],
    " high": lambda number: number.interval and number.interval[1],
}


def as_csv(table: Table) -> str:
    """The numbers of the table as CSV; what is shown in bold, marked or noted is left out."""
    shown = [
        (place, part) for place in range(len(table.columns)) for part in PARTS if part == "" or _has(table, place, part)
    ]
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([table.corner, *(table.columns[place] + part for place, part in shown)])
    for line in table.all_lines:
        writer.writerow([line.name, *(_text(line.numbers[place], part) for place, part in shown)])
    return text.getvalue()


def _has(table: Table, place: int, part: str) -> bool:
    return any(_text(line.numbers[place], part) for line in table.all_lines)


def _text(number: Number | None, part: str) -> str:
    value = None if number is None else PARTS[part](number)
    return "" if value is None else repr(value)
