"""CSV files: written whole, or growing row by row; values are read back as they were written."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

from ncttt.base.errors import InputError
from ncttt.base.files import check_place, is_special, keep_mode, name_the_file, replace_file

Values = Sequence[Any]
FORMULA = re.compile(r"'*[=+\-@\t\r]")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|[+-]?(inf|nan)")


def csv_text(columns: Sequence[str], rows: Iterable[Values]) -> str:
    """A header and rows of values as CSV; None is an empty cell.

    >>> csv_text(["name", "accuracy"], [["a, b", 0.5]])
    'name,accuracy\\n"a, b",0.5\\n'
    """
    return "".join(map(_line, chain([columns], rows)))


def _line(values: Values) -> str:
    # With a plain "\n" at the end of lines, Python before 3.13 would not quote a cell that holds a "\r".
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerow(map(guarded, values))
    return text.getvalue().removesuffix("\r\n") + "\n"


def guarded(value: Any) -> Any:
    """A value for a cell: a text that a spreadsheet would run as a formula gets an apostrophe, which stops it.

    >>> guarded("=1+2"), guarded("cat"), guarded(-0.5), guarded("-0.5")
    ("'=1+2", 'cat', -0.5, '-0.5')
    """
    return f"'{value}" if isinstance(value, str) and FORMULA.match(value) and not NUMBER.fullmatch(value) else value


def unguarded(text: str) -> str:
    """The text that `guarded` made a cell of.

    >>> unguarded(guarded("'=x")), unguarded("'tis")
    ("'=x", "'tis")
    """
    return text[1:] if text.startswith("'") and FORMULA.match(text) else text


def write_csv(path: str | Path, columns: Sequence[str], rows: Iterable[Values]) -> None:
    """Write a CSV file whole."""
    replace_file(Path(path), csv_text(columns, rows).encode(errors="backslashreplace"))


class GrowingRows:
    """Adds rows to a CSV file when it is called; `path` is where they are now."""

    def __init__(self, path: Path, file: IO[str], columns: Sequence[str]):
        self.path, self.begun = path, False
        self._file, self._columns = file, columns

    def __call__(self, rows: Iterable[Values]) -> None:
        text = csv_text(self._columns, rows)
        with name_the_file(self.path):
            self._file.write(text.partition("\n")[2] if self.begun else text)
            self._file.flush()
        self.begun = True


@contextmanager
def growing_csv(path: str | Path, columns: Sequence[str]) -> Iterator[GrowingRows]:
    """Rows are on the disk as soon as they are added; the file has its name, however the `with` block ends.

    Until then they are in a file of their own beside it, `<name>.<letters>.part`, so that a file of that name from
    before is not lost to a run without rows. A device or a pipe gets the rows themselves.
    """
    path = Path(path)
    check_place(path)
    special = is_special(path)
    part = path if special else path.with_name(f"{path.name}.{uuid4().hex[:8]}.part")
    try:
        # Names of files that are not UTF-8 are written escaped.
        file = part.open("w" if special else "x", newline="", encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None
    rows = GrowingRows(part, file, columns)
    try:
        with _closing(file, path):
            yield rows
    finally:
        if not special and rows.begun:
            keep_mode(path, part)
            part.replace(path)
            rows.path = path
        elif not special:
            part.unlink()


@contextmanager
def _closing(file: IO[str], path: Path) -> Iterator[None]:
    try:
        yield
    finally:
        with name_the_file(path):  # closing writes what a full disk has refused before
            file.close()
