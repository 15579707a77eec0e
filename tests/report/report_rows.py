"""Rows made by hand, as a store gives them."""

import json
from typing import Any


def row(method: str, corruption: str, accuracy: float, **changes: Any) -> dict[str, Any]:
    named = {
        "data": "cifar10",
        "split": "test",
        "corruption": corruption,
        "severity": 0 if corruption == "clean" else 5,
        "constants": None if corruption == "clean" else "cifar",
        "method": method,
        "checkpoint": "small",
        "protocol": "episodic",
        "order": "random",
        "batch_size": 100,
        "seed": 0,
        "images": 1000,
        "accuracy": accuracy,
        "accuracy_of_parts": None,
        "stop": None,
        "settings": json.dumps({"name": method}),
        "threads": 1,
        "device": "cpu",
    } | changes
    key = "/".join(str(named[name]) for name in named if name not in ("accuracy", "accuracy_of_parts"))
    return {"key": key} | named


def number(table, line: str, column: str):
    """A number of a table by the names of its line and column."""
    (found,) = [one for one in table.all_lines if one.name == line]
    return found.cells[table.columns.index(column)]
