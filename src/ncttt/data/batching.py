"""The one source of batches: the same images in the same order for any number of workers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset

from ncttt.base.devices import pinned
from ncttt.base.errors import InputError
from ncttt.data.files.imageset import ImageSet
from ncttt.data.files.prefetch import prefetch
from ncttt.data.shuffling import shuffled
from ncttt.data.torch_data import LoadedBatches, as_image_set

CALIBRATED = 128  # images at a time, where nobody says how many


@dataclass(frozen=True, eq=False)
class Batches:
    """An iterable of (images float (B, C, H, W) in [0, 1], labels int64 (B,), or None); see `batches`."""

    data: ImageSet
    order: tuple[np.ndarray, ...]
    workers: int
    device: str | torch.device

    def __len__(self) -> int:
        return len(self.order)

    def __iter__(self) -> Iterator[tuple[Tensor, Any]]:
        for images, labels in prefetch(self._read, self.order, self.workers):
            # NHWC seen as NCHW is channels_last already, and the conversion keeps that layout.
            pixels = images.to(self.device, non_blocking=True).permute(0, 3, 1, 2)
            floats = pixels.float().div_(255) if pixels.dtype == torch.uint8 else pixels
            yield floats, None if labels is None else labels.to(self.device, non_blocking=True)

    def _read(self, indices: np.ndarray) -> tuple[Tensor, Tensor | None]:
        images, labels = np.ascontiguousarray(self.data.images[indices]), self.data.labels
        # Pinned here, by the thread that reads ahead: a copy to a GPU is asynchronous from such memory alone.
        pixels = pinned(torch.from_numpy(images), self.device)
        return pixels, None if labels is None else pinned(torch.from_numpy(labels[indices]), self.device)

    def after(self, done: int) -> Batches:
        """The batches that are left when so many are done."""
        return replace(self, order=self.order[done:])


def batches(
    data: Any,
    batch_size: int | None = None,
    *,
    shuffle: bool = False,
    seed: int = 0,
    epoch: int = 0,
    workers: int = 0,
    device: str | torch.device = "cpu",
    drop_last: bool = False,
    rank: int = 0,
    world: int = 1,
) -> Batches | LoadedBatches:
    """Batches (images float (B, C, H, W) in [0, 1], channels last; labels int64 (B,), or None) of one epoch.

    `data` is an `ImageSet`, a map-style Dataset of PyTorch, read as `as_image_set` says, or a DataLoader, whose batches
    and order are its own and which takes nothing but `device`, `seed` and `epoch`.

    The order depends on (seed, epoch) only. Of `world` ranks each gets its own share; with `drop_last` all
    get the same number of batches. `workers` threads read ahead. Normalisation belongs to the model.

    >>> from ncttt.data import load
    >>> images, labels = next(iter(batches(load("digits", "test"), 64, shuffle=True)))
    >>> images.shape, images.dtype, labels.dtype
    (torch.Size([64, 3, 32, 32]), torch.float32, torch.int64)
    """
    if isinstance(data, DataLoader):
        if batch_size is not None or shuffle or workers or drop_last or world > 1:
            raise InputError("a DataLoader has its own batch size, order and workers; give batches its Dataset instead")
        return LoadedBatches(data, device, seed, epoch)
    data = as_image_set(data)
    if batch_size is None or batch_size < 1 or workers < 0 or not 0 <= rank < world:
        raise InputError(
            f"batches need batch_size >= 1, workers >= 0 and 0 <= rank < world; "
            f"found batch_size={batch_size}, workers={workers}, rank={rank}, world={world}"
        )
    for what, number in (("seed", seed), ("epoch", epoch)):
        if not isinstance(number, int | np.integer) or number < 0:
            raise InputError(f"batches need a {what} that is an integer from 0; found {number!r}")
    indices = shuffled(len(data), seed, epoch) if shuffle else np.arange(len(data))
    share = indices[rank::world]
    if drop_last:
        share = share[: len(data) // world // batch_size * batch_size]
    order = tuple(share[start : start + batch_size] for start in range(0, len(share), batch_size))
    return Batches(data, order, workers, device)


def source_batches(data: Any) -> Any:
    """Batches of an `ImageSet`, or of a Dataset or DataLoader of PyTorch; other iterables are batches already.

    The labels of a Dataset are not looked for.
    """
    if isinstance(data, DataLoader):
        return batches(data)
    if isinstance(data, ImageSet | Dataset) and not isinstance(data, IterableDataset):
        return batches(as_image_set(data, labelled=False), CALIBRATED)
    return data
