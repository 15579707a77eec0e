"""Which rows a figure is drawn from: those that were asked for, of one setup."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ncttt.base.errors import InputError, nearest
from ncttt.data.corruptions import CLEAN
from ncttt.report.names import column_of, settings_in

Row = Mapping[str, Any]
SETUP = ("data", "split", "method", "checkpoint", "protocol", "order", "batch_size", "severity", "constants")
OF_CORRUPTIONS = ("severity", "constants")  # clean images have none of them


def rows_where(rows: Iterable[Row], where: Mapping[str, Any]) -> list[Row]:
    """The rows whose columns have these values, a list meaning any of them.

    >>> rows_where([{"severity": 1}, {"severity": 3}, {"severity": 5}], {"severity": [3, 5]})
    [{'severity': 3}, {'severity': 5}]
    """
    rows = list(rows)
    for name in where:
        if rows and name not in rows[0]:
            raise InputError(f"rows have no column {name!r}{nearest(name, rows[0])}")
    several = {name: value if isinstance(value, list) else [value] for name, value in where.items()}
    chosen = [row for row in rows if all(row[name] in values for name, values in several.items())]
    if not chosen:
        asked = ", ".join(f"{name}={value}" for name, value in where.items())
        raise InputError(f"none of {len(rows)} rows has {asked}" if asked else "there are no rows")
    return chosen


def rows_of_method(rows: Iterable[Row], method: str) -> list[Row]:
    """The rows of single corruptions of a method, by its name or its label."""
    rows = [row for row in rows if "+" not in row["corruption"]]
    own = [row for row in rows if row["method"] == method] or [row for row in rows if column_of(row).method == method]
    if not own:
        raise InputError(f"no rows of {method!r}{nearest(method, dict.fromkeys(row['method'] for row in rows))}")
    return own


def check_one_setup(rows: Sequence[Row], but: Iterable[str] = ()) -> None:
    """Raise an `InputError` where rows differ in more than corruption and seed: their mean would mean nothing."""
    for name in (*SETUP, "settings"):
        shown = rows if name not in OF_CORRUPTIONS else [row for row in rows if row["corruption"] != CLEAN]
        told = map(settings_in, shown) if name == "settings" else (row.get(name) for row in shown)
        values = list(dict.fromkeys(map(str, told)))
        if len(values) > 1 and name not in but:
            raise InputError(
                f"the figure shows one {name.replace('_', ' ')}, but the rows have {' and '.join(values[:4])}; "
                f"choose by --where.{name}"
            )
