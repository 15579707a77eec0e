"""Files of folders put into even batches, decoded when their turn comes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ncttt.base.errors import InputError
from ncttt.data.files.finding import image_files
from ncttt.data.files.image_files import decode, opened
from ncttt.data.files.resizing import shorter_side
from ncttt.data.orders import parse_order
from ncttt.data.planning import check_batch_size, planned_batches


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


def file_batches(folders: Sequence[str | Path], batch_size: int, order: str, seed: int) -> list[FileBatch]:
    """The batches of a stream of folders, one after another; files sorted by name (`given`), or `random` in each.

    Batches are as even as can be and no larger than asked: 130 files in batches of 128 are two of 65, because a last
    batch of two images would have no statistics worth the name.
    """
    check_batch_size(batch_size)
    if not folders:
        raise InputError("a stream needs at least one folder or file of images; found none")
    _check_order(order)
    domains = _domains(folders)
    labels = [np.zeros(len(files), np.int64) for _, files in domains]
    return [
        FileBatch(int(numbers[0]), domains[numbers[0]][0], tuple(domains[numbers[0]][1][place] for place in places))
        for numbers, places in planned_batches(labels, order, batch_size, seed, even=True)
    ]


def mixed(batches: Sequence[FileBatch], random: np.random.Generator) -> list[FileBatch]:
    """The batches of a folder with its files in random order."""
    files = random.permutation(np.asarray([file for batch in batches for file in batch.files], object))
    parts = np.split(files, np.cumsum([len(batch.files) for batch in batches])[:-1])
    return [batch._replace(files=tuple(part)) for batch, part in zip(batches, parts, strict=True)]


def read_batch(batch: FileBatch, size: int, resize: str, skip_bad: bool) -> ReadBatch:
    """Decode the files of a batch, as RGB squares of that size; one that cannot be is an error, or left out."""
    results = {file: _pixels_or_error(file, size, resize) for file in batch.files}
    good = {file: pixels for file, pixels in results.items() if isinstance(pixels, np.ndarray)}
    bad = tuple(str(error) for error in results.values() if isinstance(error, InputError))
    if bad and not skip_bad:
        raise InputError(f"{bad[0]}; skip_bad (--skip-bad) leaves such files out")
    pixels = np.stack(list(good.values())) if good else np.empty((0, size, size, 3), np.uint8)
    return ReadBatch(tuple(good), pixels, bad)


def warn_of_other_size(file: str, size: int, resize: str) -> None:
    """Warn if an image is of another size, and so will be cut and scaled."""
    try:
        with opened(Path(file)) as image:
            width, height = image.size
    except Exception:  # what cannot be read is told when it is read
        return
    side = shorter_side(resize, size)
    if (width, height) != (size, size) or side not in (None, size):
        how = (
            "cut to their central square and scaled to"
            if side is None
            else f"scaled to a shorter side of {side} and cut to"
        )
        warnings.warn(f"{file} is {width}x{height}: images are {how} {size}x{size}", stacklevel=2)


def _check_order(order: str) -> None:
    parsed, use = parse_order(order), "use 'random' or 'given'"
    if parsed.needs_labels:
        raise InputError(f"the order {order!r} follows the classes of images, and image files have no labels; {use}")
    if parsed.mixed:
        raise InputError(f"the order {order!r} mixes corruptions of the same images, and folders hold others; {use}")


def _pixels_or_error(file: str, size: int, resize: str) -> np.ndarray | InputError:
    try:
        return decode(Path(file), size, resize)
    except InputError as error:
        return error


def _domains(places: Sequence[str | Path]) -> list[tuple[str, list[str]]]:
    """Folders with their files; image files that are given one after another are a domain, named by their folder."""
    domains = []
    for is_file, group in groupby(map(Path, places), Path.is_file):
        given = list(group)
        if is_file:
            domains.append((str(given[0].parent), list(map(str, given))))
        else:
            domains += [(str(folder), _files(folder)) for folder in given]
    return domains


def _files(folder: Path) -> list[str]:
    if not folder.is_dir():
        raise InputError(f"there is no folder and no file {folder}")
    files = image_files(folder)
    if not files:
        raise InputError(f"{folder} holds no images")
    return files
