"""What the gain of a method is made of, from rows alone: its checkpoint with source statistics, with batch statistics,
and with the method's steps on top. The share of statistics and the share of steps add up to the whole gain.

`ncttt.benchmark.attribute` divides gains by their predictions, with intervals.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ncttt.data.corruptions import CLEAN
from ncttt.report.names import column_of, corruption_order, named_columns
from ncttt.report.table import average

Row = Mapping[str, Any]

# Neither learns anything, so their rows serve every protocol.
OWN_NORM = {"source": "source", "ptbn": "batch"}
SAME = ("data", "split", "corruption", "severity", "constants", "order", "batch_size", "seed", "images", "weights")
SETUP = ("data", "split", "severity", "constants", "protocol", "order", "batch_size")


@dataclass(frozen=True)
class Share:
    """Accuracy in percent of one checkpoint in three setups, mean over seeds, on one or several `corruptions`."""

    method: str
    checkpoint: str
    setup: dict[str, Any]
    corruptions: tuple[str, ...]
    source: float
    batch: float
    adapted: float

    @property
    def statistics(self) -> float:
        """What batch statistics give over those of the source, in points."""
        return self.batch - self.source

    @property
    def steps(self) -> float:
        """What the method gives over batch statistics, in points."""
        return self.adapted - self.batch


def shares_of_rows(rows: Iterable[Row]) -> list[Share]:
    """A share for each method with batch statistics, over all corruptions (not the clean images) it was measured on.

    Methods whose checkpoint was not measured as it is and with batch statistics on the same images are left out.
    """
    return [_together(parts) for parts in _groups(rows)]


def shares_of_each_corruption(rows: Iterable[Row]) -> list[Share]:
    """The same for each corruption, clean images included."""
    shares = []
    for parts in _groups(rows, clean=True):
        by_corruption: dict[str, list[Share]] = {}
        for part in parts:
            by_corruption.setdefault(part.corruptions[0], []).append(part)
        shares += [_together(by_corruption[name]) for name in sorted(by_corruption, key=corruption_order)]
    return shares


def unadapted(rows: Iterable[Row]) -> dict[tuple[Any, ...], Row]:
    """Rows of checkpoints as they are and with batch statistics, by `(method, *same_images(row))`."""
    return {(_method(row), *same_images(row)): row for row in rows if _norm(row) == OWN_NORM.get(_method(row))}


def same_images(row: Row) -> tuple[Any, ...]:
    """What is the same in rows that can be compared: weights, and images in their order."""
    return tuple(row.get(name) for name in SAME)


def _groups(rows: Iterable[Row], clean: bool = False) -> list[list[Share]]:
    """Shares of single rows, those of one method, checkpoint and setup together, in the order of tables."""
    rows = [row for row in rows if "+" not in row["corruption"] and (clean or row["corruption"] != CLEAN)]
    still = unadapted(rows)
    names = named_columns(column_of(row) for row in rows)
    groups: dict[tuple[Any, ...], list[Share]] = {}
    for row in rows:
        source, batch = (still.get((name, *same_images(row))) for name in OWN_NORM)
        if _method(row) in OWN_NORM or _norm(row) != "batch" or source is None or batch is None:
            continue
        setup = {name: row.get(name) for name in SETUP}
        accuracies = (100 * one["accuracy"] for one in (source, batch, row))
        share = Share(names[column_of(row)], row["checkpoint"], setup, (row["corruption"],), *accuracies)
        groups.setdefault((list(names).index(column_of(row)), *map(str, setup.values())), []).append(share)
    return [groups[key] for key in sorted(groups)]


def _together(parts: Sequence[Share]) -> Share:
    first = parts[0]
    names = tuple(sorted({name for part in parts for name in part.corruptions}, key=corruption_order))
    means = (average(getattr(part, kind) for part in parts) for kind in ("source", "batch", "adapted"))
    return Share(first.method, first.checkpoint, first.setup, names, *means)


def _method(row: Row) -> str:
    return column_of(row).method


def _norm(row: Row) -> str | None:
    """The statistics policy, where it is one for gradient and prediction."""
    norm = json.loads(row.get("settings") or "{}").get("norm", OWN_NORM.get(_method(row)))
    return norm if isinstance(norm, str) else None
