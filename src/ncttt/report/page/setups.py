"""Rows into setups: what was measured alike, with a line for each method in it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ncttt.base.errors import InputError
from ncttt.data.corruptions import CLEAN
from ncttt.report.accuracy import AXES, Measurements, Row, corruptions_only, measurements
from ncttt.report.names import Column, column_of
from ncttt.report.page.lines import MethodLine, Setup
from ncttt.report.page.names import is_repeated, line_names, model_names
from ncttt.report.shares import OWN_NORM, shares_of_each_corruption, shares_of_rows
from ncttt.report.table import Number, average

BESIDES = ("ece", "images_per_second", "steps_taken", "mended", "broken")  # averaged like the accuracy


def setups_of(rows: Iterable[Row]) -> list[Setup]:
    """Every setup in which rows were measured, data set by data set."""
    by_data: dict[Any, list[Row]] = {}
    for row in rows:
        _check(row)
        by_data.setdefault(row["data"], []).append(row)
    if not by_data:
        raise InputError("a page was asked for and no rows were given; is the store empty?")
    return [setup for data in sorted(by_data, key=str) for setup in _setups(by_data[data])]


def _check(row: Row) -> None:
    accuracy = row.get("accuracy")
    if not isinstance(accuracy, (int, float)) or not 0 <= accuracy <= 1:
        raise InputError(f"an accuracy is a number from 0 to 1; {row.get('method')} has {accuracy!r}")


def _setups(rows: Sequence[Row]) -> list[Setup]:
    every = measurements(rows)
    models = model_names(column for measured in every for column in measured.names)
    return [_setup(measured, every, models) for measured in every]


def _setup(measured: Measurements, others: Sequence[Measurements], models: Mapping[str | None, str]) -> Setup:
    scored = tuple(corruptions_only(measured.corruptions)) or tuple(measured.corruptions)
    facets = {"data": measured.data} | {name: facet(name, measured.axes[name]) for name in AXES}
    names = line_names(measured.accuracy, models)
    lines = [
        _line(measured, column, scored, others, name, facets | {"checkpoint": models[column.checkpoint]})
        for column, name in names.items()
    ]
    return Setup(measured.title, measured.axes, facets, tuple(measured.corruptions), scored, tuple(lines))


def facet(name: str, value: Any) -> str:
    """A value that one can filter by, as text.

    >>> facet("severity", 0), facet("sequence", "fog+snow"), facet("batch_size", 64)
    ('clean', 'fog, snow', '64')
    """
    if name == "severity" and not value:
        return CLEAN
    return "" if value is None else ", ".join(str(value).split("+"))


def _line(
    measured: Measurements,
    column: Column,
    scored: Sequence[str],
    others: Sequence[Measurements],
    name: str,
    facets: Mapping[str, str],
) -> MethodLine:
    rows = tuple(row for row in measured.rows if column_of(row) == column)
    mean, source = measured.mean(column, scored), _source_mean(measured, column, scored, others)
    parts = _share_rows(rows, column, measured, others)
    return MethodLine(
        name,
        column,
        is_repeated(column, list(measured.accuracy)),
        dict(facets),
        rows,
        mean,
        None if column.method == "source" else _difference(mean, source),
        {name: number for name in measured.corruptions if (number := measured.number(column, name)) is not None},
        {name: _mean_of(rows, name, scored) for name in BESIDES},
        next(iter(shares_of_rows(parts)), None),
        tuple(shares_of_each_corruption(parts)),
    )


def _difference(mean: Number | None, source: Number | None) -> Number | None:
    return None if mean is None or source is None else Number(mean.mean - source.mean, signed=True)


def _source_mean(
    measured: Measurements, column: Column, scored: Sequence[str], others: Sequence[Measurements]
) -> Number | None:
    """The same checkpoint as it is; it learns nothing, so another protocol's rows serve where this one has none."""
    for one in [measured, *(other for other in others if _alike(measured, other))]:
        for candidate in one.accuracy:
            if (candidate.method, candidate.checkpoint) == ("source", column.checkpoint):
                return one.mean(candidate, scored)
    return None


def _share_rows(
    rows: Sequence[Row], column: Column, measured: Measurements, others: Sequence[Measurements]
) -> list[Row]:
    """The rows of one method in one setup, and whatever its checkpoint gave without steps."""
    if measured.axes["sequence"] is not None or column.method in OWN_NORM:
        return []
    alike = [measured, *(other for other in others if _alike(measured, other))]
    still = [row for one in alike for row in one.rows if column_of(row).method in OWN_NORM]
    return [*rows, *(row for row in still if row.get("checkpoint") == column.checkpoint)]


def _alike(measured: Measurements, other: Measurements) -> bool:
    return other is not measured and all(measured.axes[name] == other.axes[name] for name in AXES if name != "protocol")


def _mean_of(rows: Sequence[Row], name: str, scored: Sequence[str]) -> float | None:
    """The mean of a column over the rows that count; of images that changed, their share in percent."""
    values = [_value(row, name) for row in rows if row["corruption"] in scored]
    known = [value for value in values if value is not None and math.isfinite(value)]
    return average(known) if known else None


def _value(row: Row, name: str) -> float | None:
    value, images = row.get(name), row.get("images")
    if value is None or name not in ("mended", "broken"):
        return value
    return 100 * value / images if images else None
