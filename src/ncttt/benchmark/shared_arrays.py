"""Arrays that the processes of a machine share: `.npy` files, made once by the first process that needs them."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ncttt.base.files import replacing
from ncttt.base.locks import locked

Content = tuple[tuple[int, ...], Any, Iterator[np.ndarray]]  # of an array's file: shape, kind and pieces


def shared(path: Path, make: Callable[[], Content]) -> np.ndarray:
    """A memory map of the array in a file, which `make` gives the content of unless the file is there."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with locked(path.with_suffix(".lock")):
            if not path.exists():
                _write(path, *make())
    return _opened(path)


def let_go(array: np.ndarray) -> None:
    """Hand back what was read of a memory map; the system keeps it at hand as long as it has room.

    Else all that a process has ever read of a file counts to its memory, up to the whole file.
    """
    if isinstance(array.base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):  # not on Windows
        array.base.madvise(mmap.MADV_DONTNEED)


def whole(array: np.ndarray) -> Content:
    """The content of a file that holds this array."""
    return array.shape, array.dtype, iter([array])


def _write(path: Path, shape: tuple[int, ...], kind: Any, pieces: Iterator[np.ndarray]) -> None:
    """Piece by piece; on a file system without locks two processes may be at it."""
    with replacing(path) as file:
        header = {"descr": np.lib.format.dtype_to_descr(np.dtype(kind)), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        for piece in pieces:
            file.write(np.ascontiguousarray(piece).data)


@lru_cache(maxsize=64)
def _opened(path: Path) -> np.ndarray:
    return np.load(path, mmap_mode="r")
