"""A stream of image folders, adapted to batch by batch."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

from ncttt.adapt.adapter import Adapter
from ncttt.adapt.arguments import Stop
from ncttt.adapt.batch import Trace
from ncttt.adapt.image_files import FileBatch, ReadBatch, file_batches, read_batch, warn_of_other_size
from ncttt.adapt.protocols import Protocol
from ncttt.base.errors import InputError
from ncttt.data.prefetch import prefetch
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

    A folder is a domain: `online` forgets at each new one, `continual` never, `episodic` after each batch. Files come
    sorted by name; `shuffle` them where the order follows the classes, because batch statistics need mixed batches.
    `skip_bad` leaves out files that cannot be read, with a warning each. Images are cut to their central square and
    scaled to the model's size, or to `image_size`. The rest is as for `Adapter`, of which this makes one.
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
        shuffle: bool = False,
        skip_bad: bool = False,
        image_size: int | None = None,
        seed: int = 0,
    ):
        folders = [folders] if isinstance(folders, str | Path) else folders
        self.size = _size(model, image_size)
        self.adapter = Adapter(model, method, steps=steps, lr=lr, protocol=protocol, stop=stop, seed=seed)
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
        warn_of_other_size(self.batches[0].files[0], self.size)
        self.adapter.reset()
        domain, number = 0, 0
        read = partial(read_batch, size=self.size, skip_bad=self.skip_bad)
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
            raise InputError(f"none of the {self.images} images can be read")

    def _adapted(self, number: int, batch: FileBatch, read: ReadBatch) -> Adapted:
        images = torch.from_numpy(read.pixels).permute(0, 3, 1, 2).float().div(255)
        shift = self._still.shift(images).cpu() if self._still.has_score else None
        logits = self.adapter(images).cpu()
        trace = self.adapter.trace
        source = logits if trace.stopped == "left to source" else self._source(images).cpu()
        return Adapted(number, batch.folder, read.files, logits, source, shift, trace)


def _size(model: nn.Module, asked: int | None) -> int:
    if asked is not None:
        return asked
    shape = getattr(model, "input_shape", None)
    if shape is None:
        raise InputError("this model does not say for which images it was made; give image_size, in pixels")
    if shape[0] != 3 or shape[1] != shape[2]:
        raise InputError(f"image files become RGB squares, but the model was made for images of {tuple(shape)}")
    return shape[1]
