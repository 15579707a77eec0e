"""CSV files: written whole, or growing row by row; values are read back as they were written."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ncttt.base.errors import InputError
from ncttt.base.files import check_place, replace_file

Values = Sequence[Any]


def csv_text(columns: Sequence[str], rows: Iterable[Values]) -> str:
    """A header and rows of values as CSV; None is an empty cell.

    >>> csv_text(["name", "accuracy"], [["a, b", 0.5]])
    'name,accuracy\\n"a, b",0.5\\n'
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([columns, *rows])
    return text.getvalue()


def write_csv(path: str | Path, columns: Sequence[str], rows: Iterable[Values]) -> None:
    """Write a CSV file whole."""
    replace_file(Path(path), csv_text(columns, rows).encode())


@contextmanager
def growing_csv(path: str | Path, columns: Sequence[str]) -> Iterator[Callable[[Iterable[Values]], None]]:
    """Rows are on the disk as soon as they are added; the file has its name, however the `with` block ends.

    Until then they are in `<name>.part`, so that a file of that name from before is not lost to a run without rows.
    """
    path = Path(path)
    part = path.with_name(f"{path.name}.part")
    check_place(path)
    try:
        file = part.open("w", newline="", encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None
    begun = False

    def add(rows: Iterable[Values]) -> None:
        nonlocal begun
        text = csv_text(columns, rows)
        file.write(text.partition("\n")[2] if begun else text)
        file.flush()
        begun = True

    try:
        with file:
            yield add
    finally:
        if begun:
            part.replace(path)
        else:
            part.unlink()
