"""The images that methods are compared on: drawn and corrupted once, shared by the processes of a machine."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ncttt.base.errors import InputError
from ncttt.base.files import locked
from ncttt.data import load
from ncttt.data.batching import shuffled
from ncttt.data.corruptions import CLEAN, corrupt
from ncttt.data.corruptions.metadata import FORMAT

SEED = 0  # of the draw of images and of their corruption: the same for every cell of every grid
PIECE = 1000  # images that are corrupted at a time
Content = tuple[tuple[int, ...], Any, Iterator[np.ndarray]]  # of an array's file: shape, kind and pieces


class Drawn(NamedTuple):
    """Images uint8 (N, H, W, 3) of a set, with their labels and places there, and what they are, whatever the name."""

    images: np.ndarray
    labels: np.ndarray
    places: np.ndarray
    classes: int
    digest: str


@dataclass(frozen=True)
class Pictures:
    """`count` images of one split of a set, or all of them, behind the first `skip` of a fixed draw.

    `data` is what a row calls the set; a set that is a folder lies at `folder`.
    """

    data: str
    split: str
    count: int | None = None
    skip: int = 0
    root: str | None = None
    folder: str | None = None

    def draw(self) -> Drawn:
        """Read them; the last few sets are remembered."""
        return _draw(self)


@lru_cache(maxsize=4)
def _draw(pictures: Pictures) -> Drawn:
    data = load(pictures.folder or pictures.data, pictures.split, root=pictures.root)
    skip = pictures.skip
    count = len(data) - skip if pictures.count is None else pictures.count
    if skip < 0 or count < 1 or skip + count > len(data):
        behind = f" behind the first {skip}" if skip else ""
        raise InputError(f"asked for {count} images{behind} of {data.name}, which has {len(data)}")
    places = np.sort(shuffled(len(data), SEED, 0)[skip : skip + count])
    images, labels = np.ascontiguousarray(data.images[places]), data.labels[places]
    digest = hashlib.sha256(images.data)
    digest.update(labels.tobytes() + places.tobytes())
    return Drawn(images, labels, places, len(data.classes), digest.hexdigest()[:16])


@dataclass(frozen=True)
class Scene:
    """Pictures under one corruption; `digest` is that of the clean images, `constants` a table of severities."""

    pictures: Pictures
    digest: str
    corruption: str = CLEAN
    severity: int = 0
    constants: str | None = None

    @property
    def name(self) -> str:
        """What the images are, whatever their set is called."""
        return f"{self.digest}-{self.corruption}-{self.severity}-{self.constants}-{FORMAT}"

    def images(self, cache: Path) -> np.ndarray:
        """The images uint8 (N, H, W, 3), a memory map of a file that the first process to ask has made."""
        return _shared(cache / f"{self.name}.npy", lambda: (self._drawn().images.shape, np.uint8, self._pieces()))

    def labels(self, cache: Path) -> np.ndarray:
        """The label of each image, int64 (N,)."""
        return _shared(cache / f"{self.digest}-labels.npy", lambda: _whole(self._drawn().labels))

    def _drawn(self) -> Drawn:
        drawn = self.pictures.draw()
        if drawn.digest != self.digest:
            raise InputError(f"the images of {self.pictures.data} here are not those that the grid was made for")
        return drawn

    def _pieces(self) -> Iterator[np.ndarray]:
        clean, _, places, *_ = self._drawn()
        for start in range(0, len(clean), PIECE):
            part = slice(start, start + PIECE)
            yield clean[part] if self.corruption == CLEAN else self._corrupted(clean[part], places[part])

    def _corrupted(self, images: np.ndarray, places: np.ndarray) -> np.ndarray:
        return corrupt(images, self.corruption, self.severity, seed=SEED, indices=places, constants=self.constants)


def _whole(array: np.ndarray) -> Content:
    return array.shape, array.dtype, iter([array])


def _shared(path: Path, make: Callable[[], Content]) -> np.ndarray:
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with locked(path.with_suffix(".lock")):
            if not path.exists():
                _write(path, *make())
    return _opened(path)


def _write(path: Path, shape: tuple[int, ...], kind: Any, pieces: Iterator[np.ndarray]) -> None:
    """Piece by piece, under a name of its own: on a file system without locks two processes may be at it."""
    handle, part = tempfile.mkstemp(suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            header = {"descr": np.lib.format.dtype_to_descr(np.dtype(kind)), "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, header)
            for piece in pieces:
                file.write(np.ascontiguousarray(piece).data)
        os.chmod(part, 0o644)  # others may share the cache
        os.replace(part, path)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise


@lru_cache(maxsize=64)
def _opened(path: Path) -> np.ndarray:
    return np.load(path, mmap_mode="r")
