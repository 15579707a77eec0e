"""Images that are made when they are indexed: decoded from files, or corrupted on the fly."""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from ncttt.base.errors import InputError
from ncttt.data.decoding import decode
from ncttt.data.imageset import Images


class LazyImages:
    """Image files that look like one uint8 array (N, size, size, 3) and are decoded when they are indexed."""

    dtype = np.dtype(np.uint8)

    def __init__(self, paths: Sequence[Path | str], size: int) -> None:
        self.paths, self.size = list(paths), size

    @property
    def shape(self) -> tuple[int, int, int, int]:
        return len(self.paths), self.size, self.size, 3

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, indices: np.ndarray | slice | int) -> np.ndarray:
        chosen = np.arange(len(self))[indices]
        if chosen.ndim == 0:
            return decode(Path(self.paths[chosen]), self.size)
        images = np.empty((len(chosen), self.size, self.size, 3), np.uint8)
        for row, index in enumerate(chosen):
            images[row] = decode(Path(self.paths[index]), self.size)
        return images

    def __array__(self, dtype: object = None, copy: bool | None = None) -> np.ndarray:
        return self[:]

    def select(self, indices: np.ndarray) -> "LazyImages":
        """The files at `indices`, still undecoded."""
        return LazyImages([self.paths[i] for i in indices], self.size)

    def unreadable(self, workers: int | None = None) -> dict[int, str]:
        """Decode every file once, in threads; the index and the error of those that fail."""
        with ThreadPoolExecutor(workers or os.cpu_count()) as pool:
            errors = pool.map(self._error, range(len(self)))
            return {index: error for index, error in enumerate(errors) if error}

    def _error(self, index: int) -> str | None:
        try:
            decode(Path(self.paths[index]), self.size)
        except InputError as error:
            return str(error)
        return None


class CorruptedImages:
    """Images under a corruption that depends on (seed, corruption, severity, index) only."""

    dtype = np.dtype(np.uint8)

    def __init__(
        self, images: Images, corruption: str, severity: int, seed: int, indices: np.ndarray | None = None
    ) -> None:
        check_request(images.shape, corruption, severity, seed)
        self.images, self.corruption, self.severity, self.seed = images, corruption, severity, seed
        self.indices = np.arange(len(images)) if indices is None else indices

    @property
    def shape(self) -> tuple[int, ...]:
        return len(self.indices), *self.images.shape[1:]

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, indices: np.ndarray | slice | int) -> np.ndarray:
        from ncttt.data.corruptions import corrupt

        chosen = self.indices[indices]
        some = np.atleast_1d(chosen)
        made = corrupt(self.images[some], self.corruption, self.severity, seed=self.seed, indices=some)
        return made if np.ndim(chosen) else made[0]

    def __array__(self, dtype: object = None, copy: bool | None = None) -> np.ndarray:
        return self[:]

    def select(self, indices: np.ndarray) -> "CorruptedImages":
        """The images at `indices`, corrupted as they would be in the whole set."""
        return CorruptedImages(self.images, self.corruption, self.severity, self.seed, self.indices[indices])


def check_request(shape: tuple[int, ...], corruption: str, severity: int, seed: int) -> None:
    """Refuse a corruption of images (N, H, W, 3) that are not made yet as it would be refused when they are."""
    from ncttt.data.corruptions.apply import check

    check(np.empty((0, *shape[1:]), np.uint8), corruption, severity, seed)
