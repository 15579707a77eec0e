"""What a stream gives, as CSV files that grow batch by batch: a row for each image, and a row for each batch."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ncttt.adapt.folders import Adapted
from ncttt.base.errors import InputError

PREDICTIONS = ("file", "label", "probability", "source_label", "source_probability", "shift", "batch")
TRACE = (
    "batch",
    "folder",
    "images",
    "steps",
    "stopped",
    "loss_first",
    "loss_last",
    "shift_before",
    "shift_after",
    "confidence",
    "evidence",
    "changed",
)
Row = Sequence[Any]


def prediction_rows(batch: Adapted, classes: Sequence[str] | None) -> list[Row]:
    """A row of `PREDICTIONS` for each image; classes without names are numbers."""
    scores = [None] * len(batch.files) if batch.shift is None else batch.shift.tolist()
    columns = (*_predicted(batch.logits, classes), *_predicted(batch.source_logits, classes))
    return [
        (file, *(_short(value) for value in values), _short(score), batch.number)
        for file, *values, score in zip(batch.files, *columns, scores, strict=True)
    ]


def trace_row(batch: Adapted) -> Row:
    """The row of `TRACE` of a batch; what does not apply is empty."""
    trace = batch.trace
    ends = (trace.losses[0], trace.losses[-1]) if trace.losses else (None, None)
    figures = (*ends, trace.shift_before, trace.shift_after, trace.confidence, trace.evidence)
    beginning = (batch.number, batch.folder, len(batch.files), trace.steps, trace.stopped)
    return (*beginning, *map(_short, figures), batch.changed)


@contextmanager
def growing_table(path: str | Path, columns: Row) -> Iterator[Callable[[Iterable[Row]], None]]:
    """Rows are on the disk as soon as they are added; the file has its name, however the `with` block ends.

    Until then they are in `<name>.part`, so that a file of that name from before is not lost to a run without rows.
    """
    path = Path(path)
    part = path.with_name(f"{path.name}.part")
    if path.is_dir() or not path.parent.is_dir():
        raise InputError(f"cannot write {path}: {'it' if path.is_dir() else path.parent} is {_kind(path)}")
    try:
        file = part.open("w", newline="", encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None
    rows = 0

    def add(more: Iterable[Row]) -> None:
        nonlocal rows
        text, more = io.StringIO(), list(more)
        csv.writer(text, lineterminator="\n").writerows(more if rows else [columns, *more])
        file.write(text.getvalue())
        file.flush()
        rows += len(more)

    try:
        yield add
    finally:
        file.close()
        if rows:
            os.replace(part, path)
        else:
            part.unlink()


def _predicted(logits: Any, classes: Sequence[str] | None) -> tuple[list[Any], list[float]]:
    """The most probable class of each image, and its probability."""
    probability, index = logits.softmax(1).max(1)
    return [classes[number] if classes else number for number in index.tolist()], probability.tolist()


def _short(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) else value


def _kind(path: Path) -> str:
    return "a folder" if path.is_dir() else "no folder"
