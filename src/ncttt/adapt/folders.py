"""A stream of image folders: files put into even batches, read when their turn comes, adapted to."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from ncttt.adapt.adapter import Adapter
from ncttt.adapt.arguments import Norm, Stop
from ncttt.adapt.batch import Trace
from ncttt.adapt.class_order import ClassOrder
from ncttt.adapt.file_batches import FileBatch, ReadBatch, file_batches, mixed, read_batch, warn_of_other_size
from ncttt.adapt.protocols import Protocol
from ncttt.adapt.stream_length import too_short
from ncttt.base.errors import InputError
from ncttt.base.words import counted
from ncttt.data.files.prefetch import prefetch
from ncttt.data.files.resizing import SQUARE, check_image_size, shorter_side, side_of
from ncttt.data.planning import BATCH
from ncttt.methods import Method, Source

if TYPE_CHECKING:
    from ncttt.adapt.watch import OnCollapse

SORTED = "seem to be sorted by class, and batch statistics need mixed batches:"
MIXED = f"{SORTED} they are shuffled (shuffle=False, --shuffle false, keeps their order)"
KEPT = f"{SORTED} shuffle=True, --shuffle, mixes them; the protocol goes on from folder to folder, so they are as given"
ONE_CLASS_EACH = (
    "each folder seems to hold images of one class, and batch statistics need mixed batches: give the folder that "
    "holds them all"
)


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
    at each new one, `continual` never, `episodic` after each batch. The files of a folder come sorted by name, or in
    random order with `shuffle`. By default they are shuffled where that order follows the classes, as in
    `<class>/<image>`, because batch statistics need mixed batches; but where the protocol goes on from folder to folder
    the order is kept, and a warning says what to do. Which folders are sorted so is told by what the model predicts for
    a sample, and `sorted_folders` has them. `order` says the same in the words of `Stream`: `random` or `given`; orders
    that follow the classes need labels, which folders of images to be predicted do not have.
    A batch has at most `batch_size` images, by default 128; a folder with fewer is one small batch, which a warning
    says if the size was given. `skip_bad` leaves out files that cannot be read, with a warning each. Images are brought
    to the model's size, or to `image_size`, as in its training, or as `resize` says: "square", "crop" or "crop(256)"
    and the like. The rest is as for `Adapter`, of which this makes one.
    """

    def __init__(
        self,
        model: nn.Module,
        folders: str | Path | Sequence[str | Path],
        method: Method | None = None,
        *,
        batch_size: int | None = None,
        protocol: str | Protocol = "episodic",
        stop: Stop = "source",
        steps: int | None = None,
        lr: float | None = None,
        norm: Norm | None = None,
        on_collapse: OnCollapse | None = None,
        shuffle: bool | None = None,
        order: str | None = None,
        skip_bad: bool = False,
        image_size: int | None = None,
        resize: str | None = None,
        seed: int = 0,
    ):
        folders = [folders] if isinstance(folders, str | Path) else folders
        self.size = _size(model, image_size)
        self.resize = getattr(model, "resize", SQUARE) if resize is None else resize
        shorter_side(self.resize, self.size)  # an unknown way is refused here
        rules = {"protocol": protocol, "stop": stop, "on_collapse": on_collapse}
        self.adapter = Adapter(model, method, steps=steps, lr=lr, norm=norm, seed=seed, **rules)
        order = _order(order, shuffle)
        self.batches = file_batches(folders, BATCH if batch_size is None else batch_size, order or "given", seed)
        self._warn_of_few_images(batch_size)
        self.skip_bad = skip_bad
        # A copy that stays as it is, and tells what the model would say without adaptation.
        self._still = Adapter(model, self.adapter.method if self.adapter.has_score else Source())
        self._source = Adapter(self._still.model, Source(), copy=False)
        self.sorted_folders: tuple[str, ...] = ()
        if order is None:
            self._mix_sorted_folders(seed)

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

    def _domains(self) -> list[list[FileBatch]]:
        return [list(group) for _, group in groupby(self.batches, lambda batch: batch.domain)]

    def _warn_of_few_images(self, batch_size: int | None) -> None:
        """Say it if folders have fewer images than the batches that were asked for, or the method is waiting for."""
        domains = self._domains()
        sizes = [[len(batch.files) for batch in domain] for domain in domains]
        few = [n for n, each in enumerate(sizes) if batch_size is not None and sum(each) < batch_size]
        if few:
            others = f", and {counted(len(few) - 1, 'other folder')}" if len(few) > 1 else ""
            warnings.warn(
                f"{domains[few[0]][0].folder} has {counted(sum(sizes[few[0]]), 'image')}{others}: fewer than the "
                f"{batch_size} of a batch, so they are a small batch",
                stacklevel=3,
            )
        method = replace(self.adapter.method, steps=self.adapter.steps)
        short = too_short(method, self.adapter.norm, self.adapter.protocol, sizes)
        if short is not None:
            warnings.warn(short, stacklevel=3)

    def _mix_sorted_folders(self, seed: int) -> None:
        """Shuffle the folders whose order follows the classes, if the protocol allows, and say so."""
        order = ClassOrder(self._still.model, partial(_readable, size=self.size, resize=self.resize))
        domains = self._domains()
        if order.folder_per_class([[file for batch in domain for file in batch.files] for domain in domains]):
            warnings.warn(ONE_CLASS_EACH, stacklevel=3)
        found = [domain for domain in domains if order.sorted_by_class([batch.files for batch in domain])]
        if not found:
            return
        self.sorted_folders = tuple(domain[0].folder for domain in found)
        named = f"the files of {', '.join(self.sorted_folders[:3])}{' and others' if len(found) > 3 else ''}"
        if self.adapter.protocol.crosses_domains:
            warnings.warn(f"{named} {KEPT}", stacklevel=3)
            return
        warnings.warn(f"{named} {MIXED}", stacklevel=3)
        random = np.random.default_rng(seed)
        self.batches = [batch for domain in domains for batch in (mixed(domain, random) if domain in found else domain)]

    def _adapted(self, number: int, batch: FileBatch, read: ReadBatch) -> Adapted:
        images = torch.from_numpy(read.pixels).permute(0, 3, 1, 2).float().div(255)
        shift = self._still.shift(images).cpu() if self._still.has_score else None
        logits = self.adapter(images).cpu()
        trace = self.adapter.trace
        source = logits if trace.stopped == "left to source" else self._source(images).cpu()
        return Adapted(number, batch.folder, read.files, logits, source, shift, trace)


def _order(order: str | None, shuffle: bool | None) -> str | None:
    if order is not None and shuffle is not None:
        raise InputError(f"order={order!r} and shuffle={shuffle} both say how files come; leave one out")
    return order if shuffle is None else "random" if shuffle else "given"


def _readable(files: Sequence[str], size: int, resize: str) -> tuple[Sequence[str], np.ndarray]:
    read = read_batch(FileBatch(0, "", tuple(files)), size, resize, skip_bad=True)
    return read.files, read.pixels


def _size(model: nn.Module, asked: int | None) -> int:
    if asked is not None:
        check_image_size(asked)
        return asked
    shape = getattr(model, "input_shape", None)
    if shape is None:
        raise InputError("this model does not say for which images it was made; give image_size, in pixels")
    return side_of(shape, "the model")
