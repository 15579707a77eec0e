"""The images of a grid: which ones of a set, and a digest of them that stands in the keys of rows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from ncttt.base.errors import InputError
from ncttt.base.pools import cores
from ncttt.data import Images, LazyImages, load
from ncttt.data.batching import shuffled
from ncttt.data.files.image_files import DECODING, decode_hashed, hash_of
from ncttt.data.files.imageset import as_bytes
from ncttt.data.files.prefetch import prefetch
from ncttt.data.files.resizing import SQUARE, exact

SEED = 0  # of the draw of images and of their corruption: the same for every cell of every grid
PIECE_VALUES = 2**22  # values that are read at a time: 1365 images of 32 pixels, 27 of 224
Hash = Any  # of hashlib, which does not name its type
Piece = tuple[np.ndarray, bytes | memoryview]  # images, and what of them goes into the digest


@dataclass(frozen=True)
class ImageDraw:
    """`count` images of one split of a set, or all of them, behind the first `skip` of a fixed draw.

    `data` is what a row calls the set; a set that is a folder lies at `folder`. A set of arrays of corrupted images is
    read by `corruption` and `severity`, and the draw has the same places in each of its blocks. For a set of image
    files `image_size` and `resize` say to what they are decoded; a set of arrays has none.
    """

    data: str
    split: str
    count: int | None = None
    skip: int = 0
    root: str | None = None
    folder: str | None = None
    corruption: str | None = None
    severity: int | None = None
    image_size: int | None = None
    resize: str = SQUARE

    def read(self) -> DrawnImages:
        """Find them; the last few draws are remembered."""
        return _read(self)


@dataclass(frozen=True, eq=False)
class DrawnImages:
    """Images uint8 (N, H, W, 3) of a set, with their labels and places there; files are read when they are indexed.

    `classes` are the names of the set's classes.
    """

    images: Images
    labels: np.ndarray
    places: np.ndarray
    classes: tuple[str, ...]

    @property
    def decoded(self) -> bool:
        """Whether the images come from image files, not from arrays."""
        images = self.images.images if isinstance(self.images, Selected) else self.images
        return not isinstance(images, np.ndarray)

    @cached_property
    def digest(self) -> str:
        """Of images, labels and places. Image files count by their contents and by what they are decoded to, because
        hashing them is far quicker than decoding them; their names do not count.
        """
        images, running = self.images, self._beginning()
        if isinstance(images, LazyImages):
            parts = prefetch(partial(_hashes, images), slices(images.shape), cores())
        else:
            parts = (seen for _, seen in _pieces(images))
        for part in parts:
            running.update(part)
        return self._end(running)

    def pieces(self, digest: str) -> Iterator[np.ndarray]:
        """The images, some at a time, files by a thread for each core; last an error unless they are of that digest."""
        running = self._beginning()
        for images, seen in _pieces(self.images):
            running.update(seen)
            yield images
        if self._end(running) != digest:
            _read.cache_clear()  # for the next grid, which gets the digest of what is there now
            raise InputError("the images here are not those that the grid was made for: begin again")

    def _beginning(self) -> Hash:
        images = self.images
        made = f"{DECODING} {images.size} {exact(images.resize, images.size)}" if isinstance(images, LazyImages) else ""
        return hashlib.sha256(made.encode())

    def _end(self, running: Hash) -> str:
        running.update(self.labels.tobytes() + self.places.tobytes())
        return running.hexdigest()[:16]


@lru_cache(maxsize=4)
def _read(draw: ImageDraw) -> DrawnImages:
    size: dict[str, Any] = {} if draw.image_size is None else {"image_size": draw.image_size, "resize": draw.resize}
    data = load(draw.folder or draw.data, draw.split, draw.root, draw.corruption, draw.severity, **size)
    skip = draw.skip
    count = len(data) - skip if draw.count is None else draw.count
    if skip < 0 or count < 1 or skip + count > len(data):
        behind = f" behind the first {skip}" if skip else ""
        raise InputError(f"asked for {count} images{behind} of {data.name}, which has {len(data)}")
    labels = data.labels_for("a grid")
    places = np.sort(shuffled(len(data), SEED, 0)[skip : skip + count])
    return DrawnImages(_selected(data.images, places), labels[places], places, data.classes)


def _selected(images: Images, places: np.ndarray) -> Images:
    """Some of the images: files and memory maps, which may be larger than the memory, stay where they are."""
    if isinstance(images, LazyImages):
        return images.select(places)
    in_memory = isinstance(images, np.ndarray) and not isinstance(images, np.memmap)
    return np.ascontiguousarray(images[places]) if in_memory else Selected(images, places)


@dataclass(frozen=True, eq=False)
class Selected:
    """The images of a larger set at these places, read when they are indexed."""

    images: Images
    places: np.ndarray

    @property
    def shape(self) -> tuple[int, ...]:
        return len(self.places), *self.images.shape[1:]

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, indices: Any) -> np.ndarray:
        return np.asarray(self.images[self.places[indices]])


def slices(shape: tuple[int, ...]) -> list[slice]:
    """The parts in which images of this shape (N, H, W, 3) are read and made."""
    size = max(1, PIECE_VALUES // int(np.prod(shape[1:])))
    return [slice(start, start + size) for start in range(0, shape[0], size)]


def _pieces(images: Images) -> Iterator[Piece]:
    read = _decoded if isinstance(images, LazyImages) else _taken
    workers = 0 if isinstance(images, np.ndarray) else cores()
    return prefetch(partial(read, images), slices(images.shape), workers)


def _taken(images: Images, part: slice) -> Piece:
    piece = np.ascontiguousarray(as_bytes(images[part]))
    return piece, piece.data


def _decoded(images: LazyImages, part: slice) -> Piece:
    each = [decode_hashed(Path(path), images.size, images.resize) for path in images.paths[part]]
    return np.stack([pixels for pixels, _ in each]), b"".join(digest for _, digest in each)


def _hashes(images: LazyImages, part: slice) -> bytes:
    return b"".join(hash_of(Path(path)) for path in images.paths[part])
