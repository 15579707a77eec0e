"""Rows in SQLite: one transaction a cell, written by the driver alone, keyed by everything that determines the row."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ncttt.base.errors import InputError, nearest
from ncttt.benchmark.rows import COLUMNS, RENAMED, Row, check_row, read_csv, upgraded, write_csv, write_parquet
from ncttt.benchmark.schema import open_store, transaction

HOW = "rows come from `ncttt bench --store FILE.sqlite`, or from `ncttt rows export`"
_ORDER = ", ".join(f'"{name}"' for name in ("data", "split", "severity", "corruption", "method", "checkpoint", "key"))


class Store:
    """Finished cells in one file; several may read while one writes. `read_only` asks for a file that is there.

    >>> from tempfile import mkdtemp
    >>> with Store(Path(mkdtemp()) / "rows.sqlite") as store:
    ...     store.write({"key": "a", "method": "source", "accuracy": 0.9})
    ...     [row["accuracy"] for row in store.rows(method="source")]
    [0.9]
    """

    def __init__(self, path: str | Path, read_only: bool = False):
        self.path = Path(path)
        self._new = not read_only and not self.path.exists()
        with self._explaining():
            if not read_only:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            self._base = open_store(self.path, read_only)

    @classmethod
    def existing(cls, path: str | Path) -> Store:
        """A store that is there, to read."""
        if not Path(path).is_file():
            raise InputError(f"there is no store {path}")
        return cls(path, read_only=True)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, kind: type | None, *_: object) -> None:
        unused = kind is not None and self._new and not self.done() and not self.failures()
        self.close()
        if unused:  # what was asked was wrong, so nothing is left of it
            self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """End the connection; what was written stays."""
        self._base.close()

    def done(self, predictions: bool = False) -> set[str]:
        """The keys of all finished cells, or of those whose predictions are here."""
        query = "SELECT key FROM predictions" if predictions else "SELECT key FROM rows"
        return {row["key"] for row in self._read(query)}

    def write(self, row: Row, predicted: np.ndarray | None = None, right: np.ndarray | None = None) -> None:
        """Keep a finished cell, in place of an older one of its key, in one transaction."""
        with self._explaining(), transaction(self._base):
            self._insert([row])
            if predicted is not None and right is not None:
                values = (row["key"], len(predicted), _packed(predicted), np.packbits(right).tobytes())
                self._base.execute("INSERT OR REPLACE INTO predictions VALUES (?, ?, ?, ?)", values)
            self._base.execute("DELETE FROM failures WHERE key = ?", (row["key"],))

    def fail(self, key: str, cell: Row, error: str) -> None:
        """Keep why a cell could not be finished."""
        with self._explaining():
            self._base.execute("INSERT OR REPLACE INTO failures VALUES (?, ?, ?)", (key, json.dumps(cell), error))

    def failures(self) -> list[Row]:
        """Cells that could not be finished: key, cell and error."""
        failures = self._read("SELECT * FROM failures ORDER BY key")
        return [dict(failure) | {"cell": upgraded(json.loads(failure["cell"]))} for failure in failures]

    def rows(self, **where: Any) -> list[Row]:
        """Rows whose columns have these values, a list meaning any of them."""
        terms, values = [], []
        for name, value in where.items():
            several = list(value) if isinstance(value, (list, tuple, set)) else [value]
            _check_asked(name, several)
            either = " OR ".join([f'"{name}" IS ?'] * len(several))  # IS, because a value may be missing
            terms.append(f"({either})")
            values += several
        condition = f"WHERE {' AND '.join(terms)}" if terms else ""
        query = f"SELECT * FROM rows {condition} ORDER BY {_ORDER}"  # nosec B608 # columns of ours, values are bound
        return [dict(row) for row in self._read(query, values)]

    def by_key(self, keys: Sequence[str]) -> dict[str, Row]:
        """The finished rows of these keys."""
        rows = {}
        for start in range(0, len(keys), 500):  # SQLite allows some thousand values in a query
            part = keys[start : start + 500]
            query = f"SELECT * FROM rows WHERE key IN ({', '.join('?' * len(part))})"  # nosec B608 # question marks alone
            rows |= {row["key"]: dict(row) for row in self._read(query, part)}
        return rows

    def right(self, key: str) -> np.ndarray | None:
        """Whether each image was right after each step count, bool (steps, N), in the order of the stream."""
        return self._images(key, lambda row, shape: np.unpackbits(_bytes(row["right"]), count=np.prod(shape)) == 1)

    def predicted(self, key: str) -> np.ndarray | None:
        """The class predicted for each image after each step count, int64 (steps, N), in the order of the stream."""
        return self._images(key, lambda row, shape: _unpacked(row["predicted"]))

    def export(self, path: str | Path) -> int:
        """Write all rows as CSV, or as Parquet if the name ends so; returns how many."""
        rows, path = self.rows(), Path(path)
        if path.suffix == ".parquet":
            write_parquet(rows, path)
        elif path.suffix == ".csv":
            write_csv(rows, path)
        else:
            raise InputError(f"rows are written as .csv or .parquet; found {path}")
        return len(rows)

    def seed(self, path: str | Path) -> int:
        """Take the rows of a CSV that `export` wrote; cells that are here already stay. Returns how many came."""
        rows = list(read_csv(Path(path)))
        here = self.done()
        new = [row for row in rows if row["key"] not in here]
        with self._explaining(), transaction(self._base):
            self._insert(new)
            self._base.execute("DELETE FROM failures WHERE key IN (SELECT key FROM rows)")
        return len(new)

    def _insert(self, rows: Iterable[Row]) -> None:
        names = ", ".join(f'"{name}"' for name in COLUMNS)
        places = ", ".join("?" * len(COLUMNS))
        values = ([row.get(name) for name in COLUMNS] for row in rows)
        self._base.executemany(f"INSERT OR REPLACE INTO rows ({names}) VALUES ({places})", values)

    def _read(self, query: str, values: Sequence[Any] = ()) -> list[sqlite3.Row]:
        with self._explaining():
            return self._base.execute(query, values).fetchall()

    def _images(self, key: str, read: Any) -> np.ndarray | None:
        query = "SELECT p.*, r.images FROM predictions p JOIN rows r USING (key) WHERE key = ?"
        rows = self._read(query, (key,))
        if not rows:
            return None
        (row,) = rows
        shape = (row["counts"], row["images"])
        return read(row, shape).reshape(shape)

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise InputError(f"cannot use the store {self.path}: {error}") from None


def _check_asked(name: str, values: Sequence[Any]) -> None:
    if name in RENAMED:
        raise InputError(f"rows have no column {name!r}; it is called {RENAMED[name]!r} now")
    if name not in COLUMNS:
        raise InputError(f"rows have no column {name!r}{nearest(name, COLUMNS)}")
    if name == "protocol" and "mixed" in values:
        raise InputError("'mixed' is no protocol but an order; ask for protocol='continual', order='mixed'")


def _packed(predicted: np.ndarray) -> bytes:
    kind = np.uint8 if predicted.max(initial=0) < 256 else np.uint16
    return bytes([kind().itemsize]) + zlib.compress(predicted.astype(kind).tobytes(), 6)


def _unpacked(blob: bytes) -> np.ndarray:
    kind = {1: np.uint8, 2: np.uint16}[blob[0]]
    return np.frombuffer(zlib.decompress(blob[1:]), kind).astype(np.int64)


def _bytes(blob: bytes) -> np.ndarray:
    return np.frombuffer(blob, np.uint8)


def read_rows(path: str | Path) -> list[Row]:
    """The rows of a store (.sqlite) or of a CSV."""
    path = Path(path)
    if not path.is_file():
        raise InputError(f"there is no file {path}; {HOW}")
    if path.suffix == ".csv":
        return list(read_csv(path))
    with path.open("rb") as file:
        if file.read(15) != b"SQLite format 3":
            raise InputError(f"{path} is neither a store of rows nor a .csv; {HOW}")
    with Store(path, read_only=True) as store:
        return [check_row(row, f"{path}, {row['key']}") for row in store.rows()]
