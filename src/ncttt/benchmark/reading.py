"""Rows from whatever file holds them: a store, or a CSV that one exported."""

from __future__ import annotations

from pathlib import Path

from ncttt.base.errors import InputError
from ncttt.benchmark.store import Store
from ncttt.benchmark.table import Row, read_csv

HOW = "rows come from `ncttt bench --store FILE.sqlite`, or from `ncttt rows export`"


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
        return store.rows()
