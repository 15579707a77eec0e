"""A stream of image folders: files put into even batches, read when their turn comes, adapted to."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from ncttt.adapt.adapter import Adapter
from ncttt.adapt.arguments import Norm, Stop
from ncttt.adapt.batch import Trace
from ncttt.adapt.protocols import Protocol
from ncttt.base.errors import InputError
from ncttt.base.words import counted
from ncttt.data.files.finding import image_files
from ncttt.data.files.image_files import decode, opened
from ncttt.data.files.prefetch import prefetch
from ncttt.data.files.resizing import SQUARE, check_image_size, shorter_side, side_of
from ncttt.methods import Method, Source


@dataclass(frozen=True)
class Adapted:
    """A batch of image files: logits `(B, classes)` with and without adaptation, and what was done.

    `shift` is the in-distribution probability `(B,)` under the model before any adaptation, with the method's own
    statistics; None for methods without a score.
    """

    number: int
    folder: str
    files: tuple[str, ...]
    logits: Tensor
    source_logits: Tensor
    shift: Tensor | None
    trace: Trace

    @property
    def changed(self) -> int:
        """How many predictions adaptation has changed."""
        return int((self.logits.argmax(1) != self.source_logits.argmax(1)).sum())


class FolderStream:
    """Iterates over the images of folders, any depth, in batches that are adapted to as they are read.

    Image files may stand in place of folders. A folder, or files given one after another, is a domain: `online` forgets
    at each new one, `continual` never, `episodic` after each batch. The files of a folder come
    sorted by name; `shuffle` them where the order follows the classes, because batch statistics need mixed batches.
    `skip_bad` leaves out files that cannot be read, with a warning each. Images are brought to the model's size, or to
    `image_size`, as in its training, or as `resize` says: "square", "crop" or "crop(256)" and the like. The rest is as
    for `Adapter`, of which this makes one.
    """

    def __init__(
        self,
        model: nn.Module,
        folders: str | Path | Sequence[str | Path],
        method: Method | None = None,
        *,
        batch_size: int = 128,
        protocol: str | Protocol = "episodic",
        stop: Stop = "source",
        steps: int | None = None,
        lr: float | None = None,
        norm: Norm | None = None,
        shuffle: bool = False,
        skip_bad: bool = False,
        image_size: int | None = None,
        resize: str | None = None,
        seed: int = 0,
    ):
        folders = [folders] if isinstance(folders, str | Path) else folders
        self.size = _size(model, image_size)
        self.resize = getattr(model, "resize", SQUARE) if resize is None else resize
        shorter_side(self.resize, self.size)  # an unknown way is refused here
        self.adapter = Adapter(model, method, steps=steps, lr=lr, protocol=protocol, norm=norm, stop=stop, seed=seed)
        self.batches = file_batches(folders, batch_size, shuffle, seed)
        self.skip_bad = skip_bad
        # A copy that stays as it is, and tells what the model would say without adaptation.
        self._still = Adapter(model, self.adapter.method if self.adapter.has_score else Source())
        self._source = Adapter(self._still.model, Source(), copy=False)

    @property
    def images(self) -> int:
        """How many files there are, readable or not."""
        return sum(len(batch.files) for batch in self.batches)

    def __len__(self) -> int:
        """How many batches there are."""
        return len(self.batches)

    def __iter__(self) -> Iterator[Adapted]:
        warn_of_other_size(self.batches[0].files[0], self.size, self.resize)
        self.adapter.reset()
        domain, number = 0, 0
        read = partial(read_batch, size=self.size, resize=self.resize, skip_bad=self.skip_bad)
        for batch, images in zip(self.batches, prefetch(read, self.batches, workers=1), strict=True):
            if batch.domain != domain:
                self.adapter.new_domain()
            domain = batch.domain
            for error in images.bad:
                warnings.warn(f"left out {error}", stacklevel=2)
            if images.files:
                number += 1
                yield self._adapted(number, batch, images)
        if not number:
            raise InputError(f"of {counted(self.images, 'image')} none can be read")

    def _adapted(self, number: int, batch: FileBatch, read: ReadBatch) -> Adapted:
        images = torch.from_numpy(read.pixels).permute(0, 3, 1, 2).float().div(255)
        shift = self._still.shift(images).cpu() if self._still.has_score else None
        logits = self.adapter(images).cpu()
        trace = self.adapter.trace
        source = logits if trace.stopped == "left to source" else self._source(images).cpu()
        return Adapted(number, batch.folder, read.files, logits, source, shift, trace)


def _size(model: nn.Module, asked: int | None) -> int:
    if asked is not None:
        check_image_size(asked)
        return asked
    shape = getattr(model, "input_shape", None)
    if shape is None:
        raise InputError("this model does not say for which images it was made; give image_size, in pixels")
    return side_of(shape, "the model")


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
        raise InputError("a stream needs at least one folder or file of images; found none")
    order = np.random.default_rng(seed)
    batches = []
    for domain, (folder, files) in enumerate(_domains(folders)):
        indices = order.permutation(len(files)) if shuffle else np.arange(len(files))
        parts = np.array_split(indices, -(-len(files) // batch_size))
        batches += [FileBatch(domain, folder, tuple(files[index] for index in part)) for part in parts]
    return batches


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
