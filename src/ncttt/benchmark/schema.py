"""The SQLite file of a store: its tables, and the versions of them that there have been."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ncttt.base.errors import InputError
from ncttt.benchmark.rows import COLUMNS

SCHEMA = 2
APPLICATION = 0x6E635454  # tells a store from any other SQLite file
_INDEX = "CREATE INDEX rows_by_scenario ON rows (data, corruption, severity, method)"
_COLUMNS = ", ".join(f'"{name}" {kind}' for name, kind in COLUMNS.items())
_TABLES = (
    f"CREATE TABLE rows ({_COLUMNS}) WITHOUT ROWID",
    _INDEX,
    "CREATE TABLE predictions (key TEXT PRIMARY KEY, counts INTEGER, predicted BLOB, right BLOB) WITHOUT ROWID",
    "CREATE TABLE failures (key TEXT PRIMARY KEY, cell TEXT, error TEXT) WITHOUT ROWID",
)
# In SQL what `table.upgraded` does to one row.
_ORDER = """CASE WHEN protocol <> 'mixed' THEN "order" WHEN "order" = 'random' THEN 'mixed'
    ELSE 'mixed(' || "order" || ')' END"""
_PROTOCOL = "CASE protocol WHEN 'mixed' THEN 'continual' ELSE protocol END"
_FROM_1 = (
    "ALTER TABLE rows RENAME COLUMN pictures TO images_digest",
    f"UPDATE rows SET \"order\" = {_ORDER}, protocol = {_PROTOCOL} WHERE protocol = 'mixed'",  # nosec B608 # constants
    "DROP INDEX rows_by_scene",
    _INDEX,
)


def open_store(path: Path, read_only: bool) -> sqlite3.Connection:
    """A connection to a store of this version: a new or older file is made so, or read as if it were."""
    base = _connected(path, read_only)
    base.row_factory = sqlite3.Row
    try:
        if not read_only:
            _prepare(base, path)
        elif _version(base, path) == 1:
            _show_as_2(base)
        return base
    except BaseException:
        base.close()
        raise


@contextmanager
def transaction(base: sqlite3.Connection) -> Iterator[None]:
    """All of it, or nothing."""
    base.execute("BEGIN IMMEDIATE")
    try:
        yield
        base.execute("COMMIT")
    except BaseException:
        if base.in_transaction:  # SQLite ends it itself on a full disk
            base.execute("ROLLBACK")
        raise


def _connected(path: Path, read_only: bool) -> sqlite3.Connection:
    options: dict[str, Any] = {"isolation_level": None, "timeout": 30}
    if not read_only:
        return sqlite3.connect(path, **options)
    # On a disk that cannot be written, SQLite reads a file only if it may take it for unchanging.
    fixed = "" if os.access(path.parent, os.W_OK) else "&immutable=1"
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro{fixed}", uri=True, **options)


def _prepare(base: sqlite3.Connection, path: Path) -> None:
    if _is_empty(base):
        base.execute("PRAGMA journal_mode = WAL")
        with transaction(base):
            if _is_empty(base):  # another process may have been quicker
                _run(base, *_TABLES, f"PRAGMA application_id = {APPLICATION}", f"PRAGMA user_version = {SCHEMA}")
    if _version(base, path) == 1:
        with transaction(base):
            if _version(base, path) == 1:
                _run(base, *_FROM_1, f"PRAGMA user_version = {SCHEMA}")
    # With WAL, a power cut may lose the last rows, never the file.
    base.execute("PRAGMA synchronous = NORMAL")


def _version(base: sqlite3.Connection, path: Path) -> int:
    application, schema = (base.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version"))
    if application != APPLICATION:
        raise InputError(f"{path} is an SQLite file, but no store of rows; it is left as it is")
    if schema not in (1, SCHEMA):
        raise InputError(
            f"{path} is a store of schema {schema}; this version reads 1 and {SCHEMA}. "
            "It is left as it is: export it with the version that wrote it, and seed a new store from the CSV"
        )
    return schema


def _show_as_2(base: sqlite3.Connection) -> None:
    """A view, in memory, of rows that cannot be rewritten; queries find it before the table."""
    values = {name: f'"{name}"' for name in COLUMNS}
    values |= {"images_digest": "pictures", "order": _ORDER, "protocol": _PROTOCOL}
    columns = ", ".join(f'{value} AS "{name}"' for name, value in values.items())
    view = f"CREATE TEMP VIEW rows AS SELECT {columns} FROM main.rows"  # nosec B608 # columns of this file
    _run(base, "PRAGMA temp_store = MEMORY", view)


def _is_empty(base: sqlite3.Connection) -> bool:
    return base.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0


def _run(base: sqlite3.Connection, *statements: str) -> None:
    for statement in statements:
        base.execute(statement)
