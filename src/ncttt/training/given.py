"""What a training learns from: an `ImageSet`, or a Dataset or DataLoader of PyTorch, checked against the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.data import DataLoader

from ncttt.base.errors import InputError
from ncttt.base.words import counted, kind_of
from ncttt.data import Batches, ImageSet, LoadedBatches, as_image_set, batches
from ncttt.data.torch_data import names_of
from ncttt.model.branched import Branched
from ncttt.training.processes import place


@dataclass(frozen=True, eq=False)
class LoadedSet:
    """The images of a DataLoader, whose batches and order are its own."""

    loader: DataLoader[Any]
    classes: tuple[str, ...]
    name: str = "DataLoader"
    images: None = None

    def __len__(self) -> int:
        """How many images an epoch has."""
        return len(self.loader) * (self.loader.batch_size or 1)


Given = ImageSet | LoadedSet


def given_set(model: Branched, data: Any, like: Given | None = None) -> Given:
    """The data with labels and class names; an `InputError` says what does not fit the model.

    The names are its own, else those of `like`, else the model's, else numbers.
    """
    count = classes_of(model)
    if isinstance(data, ImageSet):
        given: Given = data
    else:
        dataset = data.dataset if isinstance(data, DataLoader) else data
        others = model.classes if like is None else like.classes
        names = names_of(dataset) or others or tuple(map(str, range(count)))
        if isinstance(data, DataLoader):
            given = LoadedSet(_with_length(data), names)
        else:
            given = as_image_set(data, classes=names)
    if count != len(given.classes):
        raise InputError(f"the classifier has {count} classes, but {given.name} has {len(given.classes)}")
    if isinstance(given, ImageSet):
        given.labels_for("a training")
        _check_channels(model, given)
        if given is not data and len(given):  # a Dataset may give anything; an ImageSet has been checked
            model.check_images(next(iter(batches(given, 1)))[0])
    return given


def _check_channels(model: Branched, data: ImageSet) -> None:
    found, (expected, *_) = data.images.shape[3], model.input_shape or (None,)
    if expected not in (None, found):
        raise InputError(f"expected images of {counted(expected, 'channel')}; those of {data.name} have {found}")


def classes_of(model: Branched) -> int:
    """How many classes a model made by `attach` has; an `InputError` for anything else."""
    if not isinstance(model, Branched) or model.input_shape is None:
        raise InputError(f"train takes a model made by ncttt.attach; found {kind_of(model)}")
    with torch.no_grad():
        return model.eval()(torch.zeros(1, *model.input_shape).to(model.mean)).shape[1]


def given_batches(data: Given, batch_size: int, **settings: Any) -> Batches | LoadedBatches:
    """Batches as `ncttt.data.batches` gives them; of a DataLoader's own size and order."""
    if isinstance(data, ImageSet):
        return batches(data, batch_size, **settings)
    return batches(data.loader, **{name: settings[name] for name in ("device", "seed", "epoch") if name in settings})


def _with_length(loader: DataLoader[Any]) -> DataLoader[Any]:
    if place().world > 1:
        raise InputError("several processes share a Dataset, not a DataLoader; give train its Dataset")
    try:
        len(loader)
    except TypeError:
        raise InputError(
            "a training must know its steps beforehand; found a DataLoader without a length: give it a Dataset, or an "
            "IterableDataset that has __len__"
        ) from None
    return loader
