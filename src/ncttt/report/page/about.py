"""What was run, as far as rows tell: each column that explains them, with all its values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ncttt.report.columns import Column, column_of, named_columns
from ncttt.report.grid import Row
from ncttt.report.order import corruption_order, method_order, spelled


@dataclass(frozen=True)
class Settings:
    """All settings of one method on one checkpoint, values as JSON."""

    name: str
    checkpoint: str
    values: dict[str, str]


def about(rows: Sequence[Row]) -> dict[str, str]:
    """Names and values, in the order of a reader's questions; what rows do not tell is left out."""
    corruptions = {name for row in rows for name in str(row["corruption"]).split("+")}
    methods = {row["method"]: column_of(row).method for row in rows}
    found = {
        "Data": _values(f"{row['data']} ({row.get('split') or 'unknown split'})" for row in rows),
        "Images": _values(f"{row['images']:,}" for row in rows if row.get("images") and "+" not in row["corruption"]),
        "Checkpoints": _values(_checkpoint(row) for row in rows),
        "Methods": ", ".join(sorted(methods, key=lambda label: method_order(methods[label]))),
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
    return {name: text for name, text in found.items() if text}


def settings_of(rows: Iterable[Row]) -> list[Settings]:
    """The settings of every method, in the order of tables."""
    columns: dict[Column, str] = named_columns(column_of(row) for row in rows)
    return [_settings(column, name) for column, name in columns.items()]


def _settings(column: Column, name: str) -> Settings:
    values: dict[str, Any] = json.loads(column.settings or "{}")
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in values.items()}
    return Settings(name, str(column.checkpoint or ""), texts | ({"stop": column.stop} if column.stop else {}))


def _values(values: Iterable[Any]) -> str:
    """Every value once: numbers by size, texts as they come."""
    found = list(dict.fromkeys(value for value in values if value not in (None, "")))
    if all(isinstance(value, (int, float)) for value in found):
        found.sort()
    return ", ".join(map(str, found))


def _checkpoint(row: Row) -> str:
    weights = row.get("weights")
    return f"{row.get('checkpoint') or 'unknown'}{f' (weights {weights})' if weights else ''}"


def _device(row: Row) -> str:
    threads = row.get("threads")
    return f"{row.get('device') or 'unknown'}{f', {threads} threads' if threads else ''}".replace(
        " 1 threads", " 1 thread"
    )
