"""The images that methods are compared on: drawn and corrupted once, shared by the processes of a machine."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ncttt.base.errors import InputError
from ncttt.base.files import locked, replacing
from ncttt.benchmark.rows import was_read
from ncttt.data import load
from ncttt.data.batching import shuffled
from ncttt.data.corruptions import CLEAN, FORMAT, corrupt

SEED = 0  # of the draw of images and of their corruption: the same for every cell of every grid
PIECE = 1000  # images that are corrupted at a time
Content = tuple[tuple[int, ...], Any, Iterator[np.ndarray]]  # of an array's file: shape, kind and pieces


class DrawnImages(NamedTuple):
    """Images uint8 (N, H, W, 3) of a set, with their labels and places there; the digest is that of all three."""

    images: np.ndarray
    labels: np.ndarray
    places: np.ndarray
    classes: int
    digest: str


@dataclass(frozen=True)
class ImageDraw:
    """`count` images of one split of a set, or all of them, behind the first `skip` of a fixed draw.

    `data` is what a row calls the set; a set that is a folder lies at `folder`. A set of arrays of corrupted images is
    read by `corruption` and `severity`, and the draw has the same places in each of its blocks.
    """

    data: str
    split: str
    count: int | None = None
    skip: int = 0
    root: str | None = None
    folder: str | None = None
    corruption: str | None = None
    severity: int | None = None

    def read(self) -> DrawnImages:
        """Read them; the last few draws are remembered."""
        return _read(self)


@lru_cache(maxsize=4)
def _read(draw: ImageDraw) -> DrawnImages:
    data = load(draw.folder or draw.data, draw.split, draw.root, draw.corruption, draw.severity)
    skip = draw.skip
    count = len(data) - skip if draw.count is None else draw.count
    if skip < 0 or count < 1 or skip + count > len(data):
        behind = f" behind the first {skip}" if skip else ""
        raise InputError(f"asked for {count} images{behind} of {data.name}, which has {len(data)}")
    places = np.sort(shuffled(len(data), SEED, 0)[skip : skip + count])
    images, labels = np.ascontiguousarray(data.images[places]), data.labels[places]
    digest = hashlib.sha256(images.data)
    digest.update(labels.tobytes() + places.tobytes())
    return DrawnImages(images, labels, places, len(data.classes), digest.hexdigest()[:16])


@dataclass(frozen=True)
class Scenario:
    """A draw of images under one corruption at one severity.

    `digest` is that of the clean images, `constants` the name of a table of severities. Where the corrupted images lay
    ready, `digest` is their own, and `constants` says who made them.
    """

    draw: ImageDraw
    digest: str
    corruption: str = CLEAN
    severity: int = 0
    constants: str | None = None

    @property
    def name(self) -> str:
        """What the images are, whatever their set is called."""
        name = f"{self.digest}-{self.corruption}-{self.severity}-{self.constants}"
        return name if was_read(self.constants) else f"{name}-{FORMAT}"  # our code did not corrupt what was read

    def images(self, cache: Path) -> np.ndarray:
        """The images uint8 (N, H, W, 3), a memory map of a file that the first process to ask has made."""
        return _shared(self.images_file(cache), lambda: (self._drawn().images.shape, np.uint8, self._pieces()))

    def labels(self, cache: Path) -> np.ndarray:
        """The label of each image, int64 (N,)."""
        return _shared(self.labels_file(cache), lambda: _whole(self._drawn().labels))

    def images_file(self, cache: Path) -> Path:
        """Where the images are kept."""
        return cache / f"{self.name}.npy"

    def labels_file(self, cache: Path) -> Path:
        """Where the labels are kept; all corruptions of a draw share them."""
        return cache / f"{self.digest}-labels.npy"

    def _drawn(self) -> DrawnImages:
        drawn = self.draw.read()
        if drawn.digest != self.digest:
            raise InputError(f"the images of {self.draw.data} here are not those that the grid was made for")
        return drawn

    def _pieces(self) -> Iterator[np.ndarray]:
        images, _, places, *_ = self._drawn()
        ready = self.corruption == CLEAN or was_read(self.constants)
        for start in range(0, len(images), PIECE):
            part = slice(start, start + PIECE)
            yield images[part] if ready else self._corrupted(images[part], places[part])

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
    """Piece by piece; on a file system without locks two processes may be at it."""
    with replacing(path, own_name=True) as file:
        header = {"descr": np.lib.format.dtype_to_descr(np.dtype(kind)), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        for piece in pieces:
            file.write(np.ascontiguousarray(piece).data)


@lru_cache(maxsize=64)
def _opened(path: Path) -> np.ndarray:
    return np.load(path, mmap_mode="r")
