"""Rows of a benchmark as tables of accuracy: corruptions down, methods across, one table for each setup."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ncttt.base.errors import InputError
from ncttt.data.corruptions import CLEAN
from ncttt.report.names import Column, column_of, corruption_order, named_columns, spelled
from ncttt.report.table import Line, Number, Table, average, best_in_bold, over_seeds

Row = Mapping[str, Any]
Axes = tuple[Any, ...]

SETUP = ("split", "protocol", "order", "batch_size", "images", "threads", "device")  # how any row was measured
SHIFT = ("severity", "constants", "sequence")  # what clean images do not have
AXES = (*SHIFT, *SETUP)
ALWAYS = ("severity", "protocol", "batch_size")  # named in every title; the others where titles would be the same
WANTED = ("data", "corruption", "method", "accuracy")


@dataclass(frozen=True)
class Measurements:
    """The rows of one table: accuracy in percent of each column, on each corruption, with each seed.

    `rows` are what it was read from, one for each corruption.
    """

    data: str
    axes: dict[str, Any]
    title: str
    accuracy: dict[Column, dict[str, dict[Any, float]]]
    rows: tuple[Row, ...]

    @property
    def names(self) -> dict[Column, str]:
        """The columns and what they are called."""
        return named_columns(self.accuracy)

    @property
    def corruptions(self) -> list[str]:
        """What any column was measured on, in the benchmark's order."""
        return sorted({name for each in self.accuracy.values() for name in each}, key=corruption_order)

    def number(self, column: Column, corruption: str) -> Number | None:
        """Mean and deviation over seeds."""
        seeds = self.accuracy[column].get(corruption)
        return over_seeds(list(seeds.values())) if seeds else None

    def mean(self, column: Column, corruptions: Sequence[str]) -> Number | None:
        """Mean over these corruptions, None if one was not measured, and its deviation over seeds."""
        each = [self.accuracy[column].get(name, {}) for name in corruptions]
        if not all(each):
            return None
        if any(set(seeds) != set(each[0]) for seeds in each):  # a deviation would compare unlike means
            return Number(average(average(seeds.values()) for seeds in each))
        return over_seeds([average(seeds[seed] for seeds in each) for seed in each[0]])


def tables(rows: Iterable[Row]) -> list[Table]:
    """Rows of one data set as tables, the best of each line in bold; severity, protocol and the like make one each.

    Clean images, if there are any, come first in each table and do not count in the mean.
    """
    return [_table(measured) for measured in measurements(rows)]


def measurements(rows: Iterable[Row]) -> list[Measurements]:
    """The rows of one data set, those of each table together."""
    parts = [part for row in rows for part in _parts(row)]
    data, groups = _only_data(parts), _groups(parts)
    in_order = sorted(groups, key=lambda axes: [(value is not None, str(type(value)), value) for value in axes])
    named: dict[Axes, dict[str, Any]] = {axes: dict(zip(AXES, axes, strict=True)) for axes in in_order}
    titles = {axes: _title(data, own, list(named.values())) for axes, own in named.items()}
    return [_measurements(data, named[axes], titles[axes], groups[axes]) for axes in in_order]


def _groups(rows: Sequence[Row]) -> dict[Axes, list[Row]]:
    """The rows of each table; clean ones go into every table of their setup, or make one of their own."""
    groups: dict[Axes, list[Row]] = {}
    for row in rows:
        if row["corruption"] != CLEAN:
            groups.setdefault(tuple(row.get(name) for name in AXES), []).append(row)
    shifted = list(groups)
    for row in rows:
        if row["corruption"] == CLEAN:
            alike = [axes for axes in shifted if axes[len(SHIFT) :] == _setup(row)]
            for axes in alike or [(row.get("severity"), None, None, *_setup(row))]:
                groups.setdefault(axes, []).append(row)
    return groups


def corruptions_only(names: Iterable[str]) -> list[str]:
    """Without the clean images."""
    return [name for name in names if name != CLEAN]


def is_mixed(row: Row) -> bool:
    """Whether a stream of several corruptions was shuffled: nobody knows then which image is of which."""
    return row.get("protocol") == "mixed" or str(row.get("order")).startswith("mixed")


def accuracy_at(row: Row) -> dict[int, float]:
    """Accuracy in percent by the number of steps.

    >>> accuracy_at({"accuracy_at": '{"0": 0.5, "4": 0.75}'})
    {0: 50.0, 4: 75.0}
    """
    text = row.get("accuracy_at") or "{}"
    try:
        return {int(steps): 100 * float(value) for steps, value in json.loads(text).items()}
    except (ValueError, TypeError, AttributeError):
        raise InputError(f"accuracy_at is a JSON object of step counts; {row.get('method')} has {text!r}") from None


def _table(measured: Measurements) -> Table:
    columns, names = measured.names, measured.corruptions
    lines = [Line(spelled(name), best_in_bold([measured.number(column, name) for column in columns])) for name in names]
    shifts = corruptions_only(names)
    total = None
    notes: tuple[str, ...] = ()
    if len(shifts) > 1:
        means = best_in_bold([measured.mean(column, shifts) for column in columns])
        total = Line(f"Mean of {len(shifts)}", means)
        if None in means:
            notes = ("No mean is given where a corruption is missing.",)
    return Table(measured.title, "Corruption", tuple(columns.values()), tuple(lines), total, notes=notes)


def _parts(row: Row) -> list[Row]:
    """A row for each corruption of a stream that had several."""
    missing = [name for name in WANTED if row.get(name) is None]
    if missing:
        raise InputError(f"a row of a table needs {', '.join(WANTED)}; found one without {', '.join(missing)}")
    if "+" not in row["corruption"] or not row.get("accuracy_of_parts"):
        return [row]
    parts = json.loads(row["accuracy_of_parts"])
    return [
        {**row, "corruption": name, "accuracy": value, "sequence": row["corruption"]} for name, value in parts.items()
    ]


def _only_data(rows: Sequence[Row]) -> str:
    names = sorted({row["data"] for row in rows})
    if not names:
        raise InputError("a table was asked for and no rows were given; is the store empty, or the filter too narrow?")
    if len(names) > 1:
        raise InputError(f"a table shows one data set; these rows are of {', '.join(names)}: choose one")
    return names[0]


def _setup(row: Row) -> Axes:
    return tuple(row.get(name) for name in SETUP)


def _measurements(data: str, axes: dict[str, Any], title: str, rows: Sequence[Row]) -> Measurements:
    accuracy: dict[Column, dict[str, dict[Any, float]]] = {}
    for row in rows:
        seeds = accuracy.setdefault(column_of(row), {}).setdefault(row["corruption"], {})
        if row.get("seed") in seeds:
            raise InputError(
                f"two rows of {row['method']} on {row.get('checkpoint')} with seed {row.get('seed')} are of "
                f"{row['corruption']} and differ in nothing that a table shows; give it those of one grid"
            )
        seeds[row.get("seed")] = 100 * row["accuracy"]
    return Measurements(data, axes, title, accuracy, tuple(rows))


def _title(data: str, axes: dict[str, Any], tables: Sequence[dict[str, Any]]) -> str:
    """What every title names, and what else tells this table from those that would be called the same."""
    alike = [other for other in tables if all(other[name] == axes[name] for name in ALWAYS)]
    shown = [name for name in AXES if name in ALWAYS or len({other[name] for other in alike}) > 1]
    words = [f"{name.replace('_', ' ')} {axes[name]}" for name in shown if axes[name] not in (None, 0)]
    return ", ".join([f"Accuracy (%) on {data}", *words])
