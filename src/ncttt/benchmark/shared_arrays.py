"""Arrays that the processes of a machine share: `.npy` files, made once by the first process that needs them.

A digest of its name and content follows the array in its file, and is compared when a process opens it: a file that was
cut off, changed or put under another name is made again.
"""

from __future__ import annotations

import hashlib
import mmap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from ncttt.base.files import replacing
from ncttt.base.locks import locked

CHUNK = 1 << 16
Content = tuple[tuple[int, ...], Any, Iterator[np.ndarray]]  # of an array's file: shape, kind and pieces


def shared(path: Path, make: Callable[[], Content]) -> np.ndarray:
    """A memory map of the array in a file, which `make` gives the content of unless the file is there and whole."""
    try:
        return _opened(path)
    except (OSError, ValueError):
        path.parent.mkdir(parents=True, exist_ok=True)
    with locked(path.with_suffix(".lock")):
        try:
            return _opened(path)  # another process may have been quicker
        except (OSError, ValueError):
            _write(path, *make())
            return _opened(path)


def let_go(array: np.ndarray) -> None:
    """Hand back what was read of a memory map; the system keeps it at hand as long as it has room.

    Else all that a process has ever read of a file counts to its memory, up to the whole file.
    """
    if isinstance(array.base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):  # not on Windows
        array.base.madvise(mmap.MADV_DONTNEED)


@dataclass(frozen=True, eq=False)
class MappedImages:
    """Images of a file that is mapped into memory, which lets go of it again after each batch."""

    images: np.ndarray

    @property
    def shape(self) -> tuple[int, ...]:
        return self.images.shape

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, places: Any) -> np.ndarray:
        taken = np.ascontiguousarray(self.images[places])
        let_go(self.images)
        return taken


def whole(array: np.ndarray) -> Content:
    """The content of a file that holds this array."""
    return array.shape, array.dtype, iter([array])


def _write(path: Path, shape: tuple[int, ...], kind: Any, pieces: Iterator[np.ndarray]) -> None:
    """Piece by piece; on a file system without locks two processes may be at it."""
    running = _beginning(path)
    with replacing(path) as file, BytesIO() as header:
        described = {"descr": np.lib.format.dtype_to_descr(np.dtype(kind)), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(header, described)
        for part in chain([header.getvalue()], (np.ascontiguousarray(piece).data for piece in pieces)):
            running.update(part)
            file.write(part)
        file.write(running.digest())


@lru_cache(maxsize=64)
def _opened(path: Path) -> np.ndarray:
    """The array in a file whose digest is right; a `ValueError` says that it is not."""
    running = _beginning(path)
    with path.open("rb") as file:
        left = path.stat().st_size - running.digest_size
        while left > 0 and (part := file.read(min(left, CHUNK))):
            running.update(part)
            left -= len(part)
        if file.read() != running.digest():
            raise ValueError(f"{path} is damaged")
    return np.load(path, mmap_mode="r")


def _beginning(path: Path) -> Any:
    return hashlib.sha256(path.name.encode())
