"""Rows: their columns, CSV that is read back exactly, and Parquet."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from ncttt.base import csv_files
from ncttt.base.errors import InputError
from ncttt.base.files import replace_file

TEXT, WHOLE, REAL = "TEXT", "INTEGER", "REAL"
COLUMNS = {
    "key": "TEXT PRIMARY KEY",
    "data": TEXT,
    "split": TEXT,
    "corruption": TEXT,
    "severity": WHOLE,
    "method": TEXT,
    "checkpoint": TEXT,
    "weights": TEXT,
    "images_digest": TEXT,
    "protocol": TEXT,
    "order": TEXT,
    "batch_size": WHOLE,
    "seed": WHOLE,
    "images": WHOLE,
    "accuracy": REAL,
    "class_accuracy": REAL,
    "nll": REAL,
    "ece": REAL,
    "accuracy_at": TEXT,
    "accuracy_of_parts": TEXT,
    "shift_before": REAL,
    "shift_after": REAL,
    "broken": WHOLE,
    "mended": WHOLE,
    "steps_taken": REAL,
    "fallbacks": WHOLE,
    "images_per_second": REAL,
    "peak_memory_mib": REAL,
    "stop": TEXT,
    "settings": TEXT,
    "constants": TEXT,
    "threads": WHOLE,
    "device": TEXT,
    "commit": TEXT,
    "machine": TEXT,
    "versions": TEXT,
}
PUBLISHED, MADE = "published", "made"  # `constants` of corrupted images that are read, not made for the grid
ONLY_ATTRIBUTION = " (attribution)"  # ends the label of what only an attribution measures
RENAMED = {"pictures": "images_digest"}  # columns that older files have
NEEDED = ("key", "corruption", "method", "images", "seed", "accuracy", "ece", "images_per_second")
SHARES = ("accuracy", "class_accuracy", "ece", "shift_before", "shift_after")  # from 0 to 1
SIGNED = ("nll",)
JSON = ("accuracy_at", "accuracy_of_parts", "settings")
LARGEST = 2**63 - 1  # that SQLite can keep
Row = dict[str, Any]


def upgraded(row: Row) -> Row:
    """A row as it is written now, whenever it was measured.

    The digest of its images was called `pictures`, and streams of all corruptions mixed were a protocol.

    >>> upgraded({"pictures": "abc", "protocol": "mixed", "order": "by_class"})
    {'images_digest': 'abc', 'protocol': 'continual', 'order': 'mixed(by_class)'}
    """
    row = {RENAMED.get(name, name): value for name, value in row.items()}
    if row.get("protocol") == "mixed":
        order = row.get("order")
        row |= {"protocol": "continual", "order": "mixed" if order in (None, "random") else f"mixed({order})"}
    return row


def write_csv(rows: Sequence[Row], path: Path) -> None:
    """Rows as CSV; numbers are written so that they are read back exactly."""
    csv_files.write_csv(path, list(COLUMNS), ([row.get(name) for name in COLUMNS] for row in rows))


def read_csv(path: Path) -> Iterator[Row]:
    """The rows of a CSV that a store exported."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:  # spreadsheets begin a file with a mark
            reader = csv.DictReader(file)
            missing = [name for name in NEEDED if name not in (reader.fieldnames or [])]
            if missing:
                raise InputError(f"{path} is no export of a store: it has no column {missing[0]!r}")
            for number, line in enumerate(reader, start=2):
                yield _row(upgraded(line), f"{path}, line {number}")
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} is no CSV: {error}") from None


def _row(line: dict[str, str], where: str) -> Row:
    row = {name: _parsed(line.get(name), kind, f"{where}, {name}") for name, kind in COLUMNS.items()}
    return check_row(row, where)


def _parsed(text: str | None, kind: str, where: str) -> Any:
    if not text:
        return None
    try:
        return {WHOLE: int, REAL: float}.get(kind, csv_files.unguarded)(text)
    except ValueError:
        raise InputError(f"{where}: {text!r:.60} is no number") from None


def check_row(row: Row, where: str) -> Row:
    """The row as it is, or an `InputError` that names the first value which no measurement gives."""
    for name in NEEDED:
        if row.get(name) is None:
            raise InputError(f"{where}: {name} is missing")
    for name, kind in COLUMNS.items():
        value = row.get(name)
        if value is not None and not _possible(name, kind, value):
            raise InputError(f"{where}, {name}: {value!r:.60} is not possible; expected {_expected(name, kind)}")
    return row


def _possible(name: str, kind: str, value: Any) -> bool:
    if name in JSON:
        return isinstance(value, str) and _is_object(value)
    if kind not in (WHOLE, REAL):
        return isinstance(value, str)
    if not isinstance(value, int | float) or not math.isfinite(value) or (kind == WHOLE and value != int(value)):
        return False
    return 0 <= value <= (1 if name in SHARES else LARGEST) or name in SIGNED


def _expected(name: str, kind: str) -> str:
    if name in SHARES:
        return "a share from 0 to 1"
    if name in JSON:
        return "a JSON object"
    return {WHOLE: "a whole number from 0", REAL: "a finite number from 0"}.get(kind, "a text")


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def write_parquet(rows: Sequence[Row], path: Path) -> None:
    """Rows as Parquet, with typed columns."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise InputError("Parquet needs the extra `parquet`: pip install 'ncttt[parquet]'") from None
    kinds = {WHOLE: pyarrow.int64(), REAL: pyarrow.float64()}
    schema = pyarrow.schema([(name, kinds.get(kind, pyarrow.string())) for name, kind in COLUMNS.items()])
    with BytesIO() as file:
        parquet.write_table(pyarrow.Table.from_pylist(list(rows), schema), file)
        replace_file(path, file.getvalue())


def was_read(constants: str | None) -> bool:
    """Whether these `constants` of a row say that its images lay ready, each corruption with a digest of its own.

    >>> was_read("published"), was_read("made(cifar)"), was_read("cifar"), was_read(None)
    (True, True, False, False)
    """
    return constants is not None and constants.partition("(")[0] in (PUBLISHED, MADE)


def of_attribution(row: Row) -> bool:
    """Whether a row shows a variant that only an attribution measures, such as the steps of a method alone."""
    return str(row["method"]).endswith(ONLY_ATTRIBUTION)
