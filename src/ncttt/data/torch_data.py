"""PyTorch's own data: a Dataset as an `ImageSet` that reads an item when it is asked for, a DataLoader as batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import ConcatDataset, DataLoader, IterableDataset, Subset, TensorDataset

from ncttt.base.errors import InputError
from ncttt.base.seeding import seeded
from ncttt.data.files.imageset import ImageSet, numbered
from ncttt.data.item import label_of, parts, pixels_of

LARGE = 1_000_003  # a prime that keeps (seed, epoch) apart


class DatasetImages:
    """The images of a map-style Dataset as one array (N, H, W, C), uint8 or float32; an item is read when indexed."""

    def __init__(self, dataset: Any, indices: np.ndarray, keys: Sequence[str] | None, first: np.ndarray):
        self.dataset, self.indices, self.keys, self.first = dataset, indices, keys, first
        self.dtype = first.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return len(self.indices), *self.first.shape

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, indices: Any) -> np.ndarray:
        chosen = self.indices[indices]
        if np.ndim(chosen) == 0:
            return self._read(int(chosen))
        images = np.empty((len(chosen), *self.first.shape), self.dtype)
        for row, index in enumerate(chosen):
            images[row] = self._read(int(index))
        return images

    def __array__(self, dtype: object = None, copy: bool | None = None) -> np.ndarray:
        return self[:]

    def select(self, indices: np.ndarray) -> DatasetImages:
        """The images at `indices`, still unread."""
        return DatasetImages(self.dataset, self.indices[indices], self.keys, self.first)

    def _read(self, index: int) -> np.ndarray:
        image = pixels_of(parts(self.dataset[index], self.keys)[0], self.first.shape[2])
        if image.shape != self.first.shape or image.dtype != self.dtype:
            raise InputError(
                f"image {index} of the Dataset is {image.dtype} {image.shape}, another {self.dtype} "
                f"{self.first.shape} (H, W, C); let its transform bring all to one size and type"
            )
        return image


def as_image_set(
    dataset: Any,
    *,
    classes: Sequence[str] | None = None,
    labels: Any = None,
    labelled: bool = True,
    keys: Sequence[str] | None = None,
    name: str | None = None,
) -> ImageSet:
    """A map-style Dataset of PyTorch as an `ImageSet`, which reads each item when it is needed.

    An item is an image, a tuple of image and label, or a dict of them, whose `keys` are ("image", "label") or the like.
    Images are tensors (C, H, W), arrays (H, W, C) or of Pillow, uint8 or float in [0, 1], of one or three channels.
    Labels are `labels`, else the Dataset's `targets` or `labels`, else those of the items, each of which is then read
    once; with `labelled=False` there are none. Classes are `classes`, else the Dataset's, else numbers.

    >>> from torch.utils.data import TensorDataset
    >>> data = TensorDataset(torch.rand(8, 3, 32, 32), torch.arange(8) % 2)
    >>> as_image_set(data, classes=("cat", "dog"))
    ImageSet('TensorDataset', 8 images of 32x32, 2 classes)
    """
    if isinstance(dataset, ImageSet):
        return dataset
    name = type(dataset).__name__ if name is None else name
    _check_kind(dataset, name)
    image, label = parts(dataset[0], keys)
    images = DatasetImages(dataset, np.arange(len(dataset)), keys, pixels_of(image))
    if not labelled or (labels is None and label is None):
        return ImageSet(images, None, tuple(classes or names_of(dataset) or ()), name=name)
    if labels is None:
        labels = _labels(dataset, keys)
    labels = np.asarray(labels)
    return ImageSet(images, labels, tuple(classes or names_of(dataset) or numbered(labels, name)), name=name)


def _check_kind(dataset: Any, name: str) -> None:
    if isinstance(dataset, DataLoader):
        raise InputError("a DataLoader makes batches and is no set of images; give its Dataset instead")
    if isinstance(dataset, IterableDataset):
        raise InputError(f"{name} has no order to index; give a map-style Dataset, or batches of it by a DataLoader")
    bad = isinstance(dataset, str | bytes | Mapping | Tensor | np.ndarray)
    if bad or not hasattr(dataset, "__getitem__") or not hasattr(dataset, "__len__"):
        raise InputError(f"expected an ImageSet, or a Dataset or DataLoader of PyTorch; found a {name}")
    if not len(dataset):
        raise InputError(f"{name} is empty")


def names_of(dataset: Any) -> tuple[str, ...] | None:
    """The names of the classes, where a Dataset, or the one that it is a part of, has them."""
    if isinstance(dataset, Subset):
        return names_of(dataset.dataset)
    if isinstance(dataset, ConcatDataset):
        return names_of(dataset.datasets[0])
    names = getattr(dataset, "classes", None)
    return tuple(map(str, names)) if isinstance(names, Sequence) and not isinstance(names, str) and names else None


def _labels(dataset: Any, keys: Sequence[str] | None) -> np.ndarray:
    """The known labels, if the first and the last item have the same, else those of all items."""
    known, ends = _known(dataset), (0, len(dataset) - 1)
    if known is not None and all(known[i] == label_of(parts(dataset[i], keys)[1], i) for i in ends):
        return known
    return np.array([label_of(parts(dataset[i], keys)[1], i) for i in range(len(dataset))])


def _known(dataset: Any) -> np.ndarray | None:
    """Labels that can be had without reading images."""
    if isinstance(dataset, Subset):
        whole = _known(dataset.dataset)
        return None if whole is None else whole[np.asarray(dataset.indices, np.int64)]
    if isinstance(dataset, TensorDataset):
        found = dataset.tensors[1] if len(dataset.tensors) > 1 else None
    else:
        found = getattr(dataset, "targets", getattr(dataset, "labels", None))
    if found is None or getattr(dataset, "target_transform", None) is not None:
        return None
    try:
        array = np.asarray(found)
    except (ValueError, TypeError, RuntimeError):
        return None
    return array if array.shape == (len(dataset),) and array.dtype.kind in "iub" else None


@dataclass(frozen=True, eq=False)
class LoadedBatches:
    """The batches of a DataLoader, as `ncttt.data.Batches` gives them; its order is its own.

    One that shuffles without a generator of its own is seeded by (seed, epoch).
    """

    loader: DataLoader[Any]
    device: str | torch.device = "cpu"
    seed: int = 0
    epoch: int = 0
    first: int = 0
    keys: Sequence[str] | None = None

    def __len__(self) -> int:
        return len(self.loader) - self.first

    def __iter__(self) -> Iterator[tuple[Tensor, Any]]:
        # The sampler draws its order when the first batch is asked for.
        with seeded((self.seed * LARGE + self.epoch) % 2**63):
            batches = iter(self.loader)
            begun = list(islice(batches, 1))
        for number, batch in enumerate(_chained(begun, batches)):
            if number >= self.first:
                yield self._converted(batch)

    def after(self, done: int) -> LoadedBatches:
        """The batches that are left when so many are done; those are read once more."""
        return replace(self, first=self.first + done)

    def _converted(self, batch: Any) -> tuple[Tensor, Any]:
        images, labels = parts(batch, self.keys)
        if not isinstance(images, Tensor) or images.ndim != 4:
            found = tuple(images.shape) if isinstance(images, Tensor) else type(images).__name__
            raise InputError(f"a batch of the DataLoader must hold images (B, C, H, W); found {found}")
        if images.shape[1] not in (1, 3) and images.shape[3] in (1, 3):
            images = images.permute(0, 3, 1, 2)
        images = images.to(self.device, non_blocking=True)
        images = images.float() / 255 if images.dtype == torch.uint8 else images.float()
        labels = None if labels is None else torch.as_tensor(labels).to(self.device, torch.int64)
        return images.contiguous(memory_format=torch.channels_last), labels


def _chained(begun: list[Any], rest: Iterator[Any]) -> Iterator[Any]:
    yield from begun
    yield from rest
