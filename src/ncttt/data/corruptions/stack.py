"""One growing `<corruption>.npy`: pieces come in any order, a journal remembers them, the last one renames the file.

Until it is whole the file is called `<corruption>.npy.part`. A line of the journal is written after its piece is on
disk, so whatever a killed run leaves behind, the next one redoes only pieces without a line.
"""

import os
import re
from io import BytesIO
from pathlib import Path

import numpy as np

from ncttt.base.errors import InputError

Array = np.ndarray
_LINE = re.compile(rb"\d{1,19}")  # of the journal: the number of a row


class Stack:
    """A uint8 array of `shape` on its way to `path`."""

    def __init__(self, path: Path, shape: tuple[int, ...]):
        self.path, self.shape = path, shape
        self.part = path.with_name(path.name + ".part")
        self.journal = path.with_name(path.name + ".done")
        self._header = _header(shape)

    def finished(self) -> bool:
        """Whether the whole file is there; one of another shape is an error, never overwritten."""
        if not self.path.exists():
            return False
        found, expected = _opening(self.path, len(self._header)), self._header
        if found != expected or self.path.stat().st_size != self._size():
            raise InputError(
                f"{self.path} is not a uint8 array of shape {self.shape}; move it away or choose another folder"
            )
        self.journal.unlink(missing_ok=True)  # a kill may fall between the renaming and this
        return True

    def begin(self) -> set[int]:
        """Make the unfinished file if there is none yet, and tell which rows its finished pieces start at."""
        if self.part.exists() and self.part.stat().st_size == self._size():
            return self._journalled()
        self.journal.unlink(missing_ok=True)
        with open(self.part, "wb") as file:
            file.write(self._header)
            file.truncate(self._size())
        return set()

    def write(self, first_row: int, rows: Array) -> None:
        """Put `rows` at their place. Written rather than memory-mapped: a full disk is then an error, not a SIGBUS."""
        with open(self.part, "r+b") as file:
            file.seek(len(self._header) + first_row * int(np.prod(self.shape[1:])))
            file.write(np.ascontiguousarray(rows).data)
            file.flush()
            os.fsync(file.fileno())

    def record(self, first_row: int) -> None:
        """Remember that the piece starting at `first_row` is on disk."""
        with open(self.journal, "a") as file:
            file.write(f"{first_row}\n")

    def finish(self) -> None:
        """Give the file its name and forget the journal."""
        os.replace(self.part, self.path)
        sync_folder(self.path.parent)
        self.journal.unlink(missing_ok=True)

    def _journalled(self) -> set[int]:
        if not self.journal.exists():
            return set()
        content = self.journal.read_bytes()
        # What follows the last line end was cut off by a kill or a full disk; a power cut leaves zeros or worse.
        lines = [line for line in content.split(b"\n")[:-1] if _LINE.fullmatch(line)]
        whole = b"".join(line + b"\n" for line in lines)
        if whole != content:
            self.journal.write_bytes(whole)
        return {int(line) for line in lines}

    def _size(self) -> int:
        return len(self._header) + int(np.prod(self.shape))


def write_atomically(path: Path, content: bytes) -> None:
    """All of `content` under `path`, or nothing."""
    part = path.with_name(path.name + ".part")
    try:
        with open(part, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except OSError:
        part.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def npy_bytes(array: Array) -> bytes:
    """`array` as the content of an .npy file."""
    with BytesIO() as file:
        np.save(file, array, allow_pickle=False)
        return file.getvalue()


def sync_folder(folder: Path) -> None:
    """Make a rename last through a power cut, where the system can."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _header(shape: tuple[int, ...]) -> bytes:
    with BytesIO() as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": shape})
        return file.getvalue()


def _opening(path: Path, count: int) -> bytes:
    with open(path, "rb") as file:
        return file.read(count)
