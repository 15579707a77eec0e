"""The smallest grids that hold given rows, as configuration files for `ncttt bench`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import yaml

from ncttt.report.columns import column_of
from ncttt.report.grid import Row
from ncttt.report.order import CLEAN, corruption_order
from ncttt.report.page.curves import accuracy_at
from ncttt.report.pairs import is_mixed

APART = ("data", "split", "threads", "device")  # a grid has one of each


def grids_of(rows: Sequence[Row]) -> list[str]:
    """A YAML text for each grid. Folders are those of the machine that measured; `skip` is not in rows."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault((*(row.get(name) for name in APART), is_mixed(row), _images(row)), []).append(row)
    return [yaml.safe_dump(_grid(found), sort_keys=False, width=110) for found in groups.values()]


def _grid(rows: Sequence[Row]) -> dict[str, Any]:
    first = rows[0]
    asked = {
        "data": first["data"],
        "split": first.get("split"),
        "images": _images(first),
        "corruptions": _corruptions(rows),
        "severities": _several(row.get("severity") for row in rows if row["corruption"] != CLEAN),
        "constants": next((row["constants"] for row in rows if row.get("constants")), None),
        "protocols": _several(row.get("protocol") for row in rows),
        "orders": _several(row.get("order") for row in rows),
        "batch_sizes": _several(row.get("batch_size") for row in rows),
        "seeds": _several(row.get("seed") for row in rows),
        "threads": first.get("threads"),
        "device": first.get("device"),
    }
    known = {name: value for name, value in asked.items() if value not in (None, [])}
    return known | {"methods": _entries(rows, known.get("protocols", []))}


def _corruptions(rows: Sequence[Row]) -> list[str]:
    """In the order of a stream that has several, as it matters there."""
    sequence = max((row["corruption"].split("+") for row in rows), key=len)
    names = {name for row in rows for name in row["corruption"].split("+")}
    if len(sequence) == 1:
        return sorted(names, key=corruption_order)
    return [*sorted(names - set(sequence), key=corruption_order), *sequence]


def _entries(rows: Sequence[Row], protocols: Sequence[str]) -> list[dict[str, Any]]:
    columns: dict[Any, list[Row]] = {}
    for row in rows:
        columns.setdefault(column_of(row), []).append(row)
    return [_entry(found, protocols) for found in columns.values()]


def _entry(rows: Sequence[Row], protocols: Sequence[str]) -> dict[str, Any]:
    column = column_of(rows[0])
    settings = {name: value for name, value in json.loads(column.settings or "{}").items() if name != "name"}
    counts, own = sorted(accuracy_at(rows[0])), _several(row.get("protocol") for row in rows)
    entry: dict[str, Any] = {"method": column.method}
    if column.checkpoint is not None:
        entry["checkpoint"] = column.checkpoint
    if column.label != column.method:
        entry["label"] = column.label
    if len(counts) > 1:
        entry["steps"] = counts
    if column.stop is not None:
        entry["stop"] = _number(column.stop)
    if own != list(protocols):
        entry["protocols"] = own
    return entry | ({"settings": settings} if settings else {})


def _images(row: Row) -> int | None:
    """Images of one corruption; a stream of several has as many of each, and a mixed one has so many in all."""
    images = row.get("images")
    parts = 1 if is_mixed(row) else row["corruption"].count("+") + 1
    return images and images // parts


def _several(values: Iterable[Any]) -> list[Any]:
    return sorted({value for value in values if value is not None})


def _number(stop: str) -> str | float:
    try:
        return float(stop)
    except ValueError:
        return stop
