"""Accuracy along the stream: batch by batch, from the predictions that a store keeps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ncttt.report.accuracy import Row, is_mixed
from ncttt.report.page.evidence import Stream
from ncttt.report.page.lines import MethodLine, Setup
from ncttt.report.page.setups import setups_of

if TYPE_CHECKING:
    from ncttt.benchmark.store import Store

FEWEST, MOST = 4, 60  # points of a curve; a longer stream shows the mean of neighbouring batches


def streams_of(store: Store, rows: Iterable[Row]) -> list[Stream]:
    """The stream of every method in every setup, where the store has predictions of all its rows."""
    return [stream for setup in setups_of(rows) for stream in _of_setup(store, setup)]


def _of_setup(store: Store, setup: Setup) -> Iterator[Stream]:
    for line in setup.lines:
        batches = _batches(store, line, setup)
        if batches is not None and len(batches) >= FEWEST:
            accuracy, ends = _merged(batches)
            yield Stream(setup.place, line.column, accuracy, ends, _parts(line.rows[0], setup))


def _batches(store: Store, line: MethodLine, setup: Setup) -> np.ndarray | None:
    """Share of right images in each full batch (or the only part of one), mean over the rows of a method."""
    rows = {row["key"]: row for row in line.rows if row["corruption"] in setup.scored and row.get("key")}
    each = [_of_row(store, row) for row in rows.values()]
    known = [batches for batches in each if batches is not None]
    if not known or len(known) < len(each) or len({len(batches) for batches in known}) > 1:
        return None
    return np.mean(known, axis=0)


def _of_row(store: Store, row: Row) -> np.ndarray | None:
    right = store.right(row["key"])
    if right is None or not row.get("batch_size"):
        return None
    size = row["batch_size"]
    return np.array([right[-1][start : start + size].mean() for start in range(0, right.shape[1], size)])


def _merged(batches: np.ndarray) -> tuple[tuple[float, ...], tuple[int, ...]]:
    groups: Sequence[np.ndarray] = np.array_split(np.arange(len(batches)), min(MOST, len(batches)))
    accuracy = tuple(100 * float(batches[group].mean()) for group in groups)
    return accuracy, tuple(int(group[-1]) + 1 for group in groups)


def _parts(row: Row, setup: Setup) -> tuple[str, ...]:
    """The corruptions of a long stream in their order; nobody knows them in a mixed one."""
    return tuple(str(setup.axes["sequence"]).split("+")) if setup.is_stream and not is_mixed(row) else ()
