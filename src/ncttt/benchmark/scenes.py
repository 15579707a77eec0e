"""The images that methods are compared on: drawn and corrupted once, shared by the processes of a machine."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ncttt.data import load
from ncttt.data.batching import shuffled
from ncttt.data.corruptions import corrupt
from ncttt.data.corruptions.stack import npy_bytes
from ncttt.errors import InputError
from ncttt.files import locked, replace_file

CLEAN = "clean"
SEED = 0  # of the draw of images and of their corruption: the same for every cell of every grid


class Drawn(NamedTuple):
    """Images uint8 (N, H, W, 3) of a set, with their labels and places there, and what they are, whatever the name."""

    images: np.ndarray
    labels: np.ndarray
    places: np.ndarray
    classes: int
    digest: str


@dataclass(frozen=True)
class Pictures:
    """`count` images of one split of a set, or all of them, behind the first `skip` of a fixed draw."""

    data: str
    split: str
    count: int | None = None
    skip: int = 0
    root: str | None = None

    def draw(self) -> Drawn:
        """Read them; the last few sets are remembered."""
        return _draw(self)


@lru_cache(maxsize=4)
def _draw(pictures: Pictures) -> Drawn:
    data = load(pictures.data, pictures.split, root=pictures.root)
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
    """Pictures under one corruption; `digest` is that of the clean images."""

    pictures: Pictures
    digest: str
    corruption: str = CLEAN
    severity: int = 0
    constants: str | None = None

    def images(self, cache: Path) -> np.ndarray:
        """The images uint8 (N, H, W, 3), a memory map of a file that the first process to ask has made."""
        name = f"{self.digest}-{self.corruption}-{self.severity}-{self.constants or 'by-size'}"
        return _shared(cache / f"{name}.npy", self._corrupted)

    def labels(self, cache: Path) -> np.ndarray:
        """The label of each image, int64 (N,)."""
        return _shared(cache / f"{self.digest}-labels.npy", lambda: self._drawn().labels)

    def _drawn(self) -> Drawn:
        drawn = self.pictures.draw()
        if drawn.digest != self.digest:
            raise InputError(f"the images of {self.pictures.data} here are not those that the grid was made for")
        return drawn

    def _corrupted(self) -> np.ndarray:
        drawn = self._drawn()
        if self.corruption == CLEAN:
            return drawn.images
        indices, constants = drawn.places, self.constants
        return corrupt(drawn.images, self.corruption, self.severity, seed=SEED, indices=indices, constants=constants)


def _shared(path: Path, make: Callable[[], np.ndarray]) -> np.ndarray:
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with locked(path.with_suffix(".lock")):
            if not path.exists():
                replace_file(path, npy_bytes(make()))
    return np.load(path, mmap_mode="r")
