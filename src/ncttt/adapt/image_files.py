"""Image files on their way to a model: put into batches of even size, read when their turn comes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from ncttt.base.errors import InputError
from ncttt.data.image_files import decode, image_files


class FileBatch(NamedTuple):
    """The files of a batch, all of one folder, which is the stream's domain of that number, from 0."""

    domain: int
    folder: str
    files: tuple[str, ...]


class ReadBatch(NamedTuple):
    """Files that could be read, their pixels, uint8 (B, size, size, 3), and what was wrong with the others."""

    files: tuple[str, ...]
    pixels: np.ndarray
    bad: tuple[str, ...]


def file_batches(folders: Sequence[str | Path], batch_size: int, shuffle: bool, seed: int) -> list[FileBatch]:
    """The batches of a stream of folders, in their order; files sorted by name, or shuffled within their folder.

    Batches are as even as can be and no larger than asked: 130 files in batches of 128 are two of 65, because a last
    batch of two images would have no statistics worth the name.
    """
    if not isinstance(batch_size, int) or batch_size < 1:
        raise InputError(f"batch_size must be a whole number of at least 1; found {batch_size!r}")
    if not folders:
        raise InputError("a stream needs at least one folder of images; found none")
    files_of = [_files(Path(folder)) for folder in folders]
    order = np.random.default_rng(seed)
    batches = []
    for domain, (folder, files) in enumerate(zip(folders, files_of, strict=True)):
        indices = order.permutation(len(files)) if shuffle else np.arange(len(files))
        parts = np.array_split(indices, -(-len(files) // batch_size))
        batches += [FileBatch(domain, str(folder), tuple(files[index] for index in part)) for part in parts]
    return batches


def read_batch(batch: FileBatch, size: int, skip_bad: bool) -> ReadBatch:
    """Decode the files of a batch, as RGB squares of that size; one that cannot be is an error, or left out."""
    results = {file: _pixels_or_error(file, size) for file in batch.files}
    good = {file: pixels for file, pixels in results.items() if isinstance(pixels, np.ndarray)}
    bad = tuple(str(error) for error in results.values() if isinstance(error, InputError))
    if bad and not skip_bad:
        raise InputError(f"{bad[0]}; skip_bad (--skip-bad) leaves such files out")
    pixels = np.stack(list(good.values())) if good else np.empty((0, size, size, 3), np.uint8)
    return ReadBatch(tuple(good), pixels, bad)


def warn_of_other_size(file: str, size: int) -> None:
    """Warn if an image is of another size, and so will be cut and scaled."""
    try:
        with Image.open(file) as image:
            width, height = image.size
    except Exception:  # what cannot be read is told when it is read
        return
    if (width, height) != (size, size):
        warnings.warn(
            f"{file} is {width}x{height}: images are cut to their central square and scaled to {size}x{size}",
            stacklevel=2,
        )


def _pixels_or_error(file: str, size: int) -> np.ndarray | InputError:
    try:
        return decode(Path(file), size)
    except InputError as error:
        return error


def _files(folder: Path) -> list[str]:
    if not folder.is_dir():
        raise InputError(f"{folder} is no folder")
    files = image_files(folder)
    if not files:
        raise InputError(f"{folder} holds no images")
    return files
