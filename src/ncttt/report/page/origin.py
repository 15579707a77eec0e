"""Where rows come from, as far as they tell: what was run, with which settings, and the grids that measure it again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from ncttt.benchmark.rows import was_read
from ncttt.data.corruptions import CLEAN
from ncttt.report.accuracy import Row, accuracy_at, is_mixed
from ncttt.report.names import Column, column_of, corruption_order, method_order, spelled
from ncttt.report.page.names import line_names, model_names, short_method

APART = ("data", "split", "threads", "device")  # a grid has one of each


@dataclass(frozen=True)
class Settings:
    """All settings of one method on one model, values as JSON."""

    name: str
    model: str
    values: dict[str, str]


def about(rows: Sequence[Row]) -> dict[str, str]:
    """Names and values, in the order of a reader's questions; what rows do not tell is left out."""
    corruptions = {name for row in rows for name in str(row["corruption"]).split("+")}
    methods = {row["method"]: column_of(row).method for row in rows}
    models = model_names(column_of(row) for row in rows)
    texts = {
        "Data": _values(f"{row['data']} ({row.get('split') or 'unknown split'})" for row in rows),
        "Images": _values(f"{row['images']:,}" for row in rows if row.get("images") and "+" not in row["corruption"]),
        "Models": _values(_checkpoint(row, models) for row in rows),
        "Methods": ", ".join(
            short_method(label) for label in sorted(methods, key=lambda own: method_order(methods[own]))
        ),
        "Corruptions": ", ".join(spelled(name) for name in sorted(corruptions, key=corruption_order)),
        "Severities": _values(row.get("severity") for row in rows if row.get("severity")),
        "Constants of severity": _values(row.get("constants") for row in rows),
        "Protocols": _values(row.get("protocol") for row in rows),
        "Order of images": _values(row.get("order") for row in rows),
        "Batch size": _values(row.get("batch_size") for row in rows),
        "Seeds": _values(row.get("seed") for row in rows),
        "Device": _values(_device(row) for row in rows),
        "Machine": _values(row.get("machine") for row in rows),
        "Versions": _values(row.get("versions") for row in rows),
        "Commit": _values(row.get("commit") for row in rows),
        "Rows": f"{len(rows):,}",
    }
    return {name: text for name, text in texts.items() if text}


def settings_of(rows: Iterable[Row]) -> list[Settings]:
    """The settings of every method, in the order of tables."""
    columns = [column_of(row) for row in rows]
    models = model_names(columns)
    return [_settings(column, name, models[column.checkpoint]) for column, name in line_names(columns, models).items()]


def _settings(column: Column, name: str, model: str) -> Settings:
    values: dict[str, Any] = json.loads(column.settings or "{}")
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in values.items()}
    return Settings(name, model, texts | ({"stop": column.stop} if column.stop else {}))


def _values(values: Iterable[Any]) -> str:
    """Every value once: numbers by size, texts as they come."""
    once = list(dict.fromkeys(value for value in values if value not in (None, "")))
    if all(isinstance(value, (int, float)) for value in once):
        once.sort()
    return ", ".join(map(str, once))


def _checkpoint(row: Row, models: Mapping[str | None, str]) -> str:
    """The model's name, its path if it is in a folder, and its weights."""
    path, weights = row.get("checkpoint"), row.get("weights")
    name = models[path] or "unknown"
    return f"{name}{f': {path}' if path and path != name else ''}{f' (weights {weights})' if weights else ''}"


def _device(row: Row) -> str:
    threads = row.get("threads")
    return f"{row.get('device') or 'unknown'}{f', {threads} threads' if threads else ''}".replace(
        " 1 threads", " 1 thread"
    )


def grids_of(rows: Sequence[Row]) -> list[str]:
    """The smallest grids that hold the rows, each as a configuration file for `ncttt bench`.

    Folders are those of the machine that measured; `skip` is not in rows.
    """
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        # Every order of a grid goes with every protocol, but a mixed stream has a protocol of its own.
        mixed = str(row.get("order")).startswith("mixed")
        # A set that is read has one maker, whose images no other grid gives; clean images have none.
        maker = row.get("constants") if was_read(row.get("constants")) else None
        groups.setdefault((*(row.get(name) for name in APART), _images(row), mixed, maker), []).append(row)
    return [yaml.safe_dump(_grid(group), sort_keys=False, width=110) for group in groups.values()]


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
    return [_entry(own, protocols) for own in columns.values()]


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
