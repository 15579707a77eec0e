"""Rows in SQLite: one transaction a cell, written by the driver alone, keyed by everything that determines the row."""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ncttt.base.errors import InputError, nearest
from ncttt.base.files import replace_file
from ncttt.benchmark.table import COLUMNS, Row, csv_bytes, read_csv, write_parquet

SCHEMA = 1
APPLICATION = 0x6E635454  # tells a store from any other SQLite file
_TABLES = f"""
CREATE TABLE rows ({", ".join(f'"{name}" {kind}' for name, kind in COLUMNS.items())}) WITHOUT ROWID;
CREATE INDEX rows_by_scene ON rows (data, corruption, severity, method);
CREATE TABLE predictions (key TEXT PRIMARY KEY, counts INTEGER, predicted BLOB, right BLOB) WITHOUT ROWID;
CREATE TABLE failures (key TEXT PRIMARY KEY, cell TEXT, error TEXT) WITHOUT ROWID;
"""


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
        with self._explaining():
            if not read_only:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            self._base = self._connected(read_only)
            self._base.row_factory = sqlite3.Row
            try:
                self._check() if read_only else self._prepare()
            except BaseException:
                self._base.close()
                raise

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connection; what was written stays."""
        self._base.close()

    def done(self, predictions: bool = False) -> set[str]:
        """The keys of all finished cells, or of those whose predictions are here."""
        return {row["key"] for row in self._read(f"SELECT key FROM {'predictions' if predictions else 'rows'}")}

    def write(self, row: Row, predicted: np.ndarray | None = None, right: np.ndarray | None = None) -> None:
        """Keep a finished cell, in place of an older one of its key, in one transaction."""
        with self._explaining(), self._transaction():
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
        found = self._read("SELECT * FROM failures ORDER BY key")
        return [dict(row) | {"cell": json.loads(row["cell"])} for row in found]

    def rows(self, **where: Any) -> list[Row]:
        """Rows whose columns have these values, a list meaning any of them."""
        terms, values = [], []
        for name, value in where.items():
            if name not in COLUMNS:
                raise InputError(f"rows have no column {name!r}{nearest(name, COLUMNS)}")
            several = list(value) if isinstance(value, (list, tuple, set)) else [value]
            either = " OR ".join([f'"{name}" IS ?'] * len(several))  # IS, because a value may be missing
            terms.append(f"({either})")
            values += several
        condition = f"WHERE {' AND '.join(terms)}" if terms else ""
        return [dict(row) for row in self._read(f"SELECT * FROM rows {condition} ORDER BY {_ORDER}", values)]

    def by_key(self, keys: Sequence[str]) -> dict[str, Row]:
        """The finished rows of these keys."""
        found = {}
        for start in range(0, len(keys), 500):  # SQLite allows some thousand values in a query
            part = keys[start : start + 500]
            query = f"SELECT * FROM rows WHERE key IN ({', '.join('?' * len(part))})"
            found |= {row["key"]: dict(row) for row in self._read(query, part)}
        return found

    def right(self, key: str) -> np.ndarray | None:
        """Whether each image was right after each step count, bool (counts, N), in the order of the stream."""
        return self._images(key, lambda row, shape: np.unpackbits(_bytes(row["right"]), count=np.prod(shape)) == 1)

    def predicted(self, key: str) -> np.ndarray | None:
        """The class predicted for each image after each step count, int64 (counts, N), in the order of the stream."""
        return self._images(key, lambda row, shape: _unpacked(row["predicted"]))

    def export(self, path: str | Path) -> int:
        """Write all rows as CSV, or as Parquet if the name ends so; returns how many."""
        rows, path = self.rows(), Path(path)
        if path.suffix == ".parquet":
            write_parquet(rows, path)
        elif path.suffix == ".csv":
            replace_file(path, csv_bytes(rows))
        else:
            raise InputError(f"rows are written as .csv or .parquet; found {path}")
        return len(rows)

    def seed(self, path: str | Path) -> int:
        """Take the rows of a CSV that `export` wrote; cells that are here already stay. Returns how many came."""
        rows = list(read_csv(Path(path)))
        here = self.done()
        new = [row for row in rows if row["key"] not in here]
        with self._explaining(), self._transaction():
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
        found = self._read(query, (key,))
        if not found:
            return None
        row = found[0]
        shape = (row["counts"], row["images"])
        return read(row, shape).reshape(shape)

    def _connected(self, read_only: bool) -> sqlite3.Connection:
        options: dict[str, Any] = {"isolation_level": None, "timeout": 30}
        if not read_only:
            return sqlite3.connect(self.path, **options)
        # On a disk that cannot be written, SQLite reads a file only if it may take it for unchanging.
        fixed = "" if os.access(self.path.parent, os.W_OK) else "&immutable=1"
        return sqlite3.connect(f"{self.path.absolute().as_uri()}?mode=ro{fixed}", uri=True, **options)

    def _prepare(self) -> None:
        if not self._tables():
            self._base.execute("PRAGMA journal_mode = WAL")
            with self._transaction():
                if not self._tables():  # another process may have been quicker
                    self._make()
        self._check()
        # With WAL, a power cut may lose the last rows, never the file.
        self._base.execute("PRAGMA synchronous = NORMAL")

    def _check(self) -> None:
        application, schema = (
            self._base.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
        )
        if application != APPLICATION:
            raise InputError(f"{self.path} is an SQLite file, but no store of rows; it is left as it is")
        if schema != SCHEMA:
            raise InputError(
                f"{self.path} is a store of schema {schema}; this version reads {SCHEMA}. "
                "It is left as it is: export it with the version that wrote it, and seed a new store from the CSV"
            )

    def _tables(self) -> int:
        return self._base.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]

    def _make(self) -> None:
        for statement in _TABLES.split(";\n"):
            self._base.execute(statement)
        self._base.execute(f"PRAGMA application_id = {APPLICATION}")
        self._base.execute(f"PRAGMA user_version = {SCHEMA}")

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._base.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._base.execute("COMMIT")
        except BaseException:
            if self._base.in_transaction:  # SQLite ends it itself on a full disk
                self._base.execute("ROLLBACK")
            raise

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise InputError(f"cannot use the store {self.path}: {error}") from None


_ORDER = ", ".join(f'"{name}"' for name in ("data", "split", "severity", "corruption", "method", "checkpoint", "key"))


def _packed(predicted: np.ndarray) -> bytes:
    kind = np.uint8 if predicted.max(initial=0) < 256 else np.uint16
    return bytes([kind().itemsize]) + zlib.compress(predicted.astype(kind).tobytes(), 6)


def _unpacked(blob: bytes) -> np.ndarray:
    kind = {1: np.uint8, 2: np.uint16}[blob[0]]
    return np.frombuffer(zlib.decompress(blob[1:]), kind).astype(np.int64)


def _bytes(blob: bytes) -> np.ndarray:
    return np.frombuffer(blob, np.uint8)
