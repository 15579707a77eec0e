"""Baking: the batch that an adapter holds on to, and its model with the statistics that this batch was predicted by."""

from __future__ import annotations

from torch import Tensor

from ncttt.adapt.batch import AdaptableModel
from ncttt.base.errors import InputError
from ncttt.model.baked import Baked, bake, used_moments
from ncttt.model.norm import batch_share, predicting


class LastBatch:
    """The last batch of an adapter, as it was given: kept without a copy, so that a call costs nothing."""

    def __init__(self, images: Tensor | None = None):
        self._images, self._version = images, None if images is None else images._version

    def __deepcopy__(self, memo: object) -> LastBatch:
        return LastBatch()  # a copy of an adapter holds on to no batch

    def images(self) -> Tensor:
        """The batch, or an `InputError` if there is none or somebody has changed it since."""
        if self._images is None:
            raise InputError("there is no batch to bake, because none came since the last reset; give bake(images)")
        if self._images._version != self._version:
            raise InputError("the last batch was changed in place since the adapter saw it; give bake(images)")
        return self._images


def baked_as_it_stands(adaptable: AdaptableModel, images: Tensor | LastBatch) -> Baked:
    """The model with its weights as they are, and with the statistics that a prediction of the images uses."""
    policy = predicting(adaptable.norm[1])
    if not batch_share(policy):
        return bake(adaptable.model, {})
    images = images.images() if isinstance(images, LastBatch) else images
    with used_moments(adaptable.model, policy) as moments:
        adaptable.predict(images.to(adaptable.model.mean))
    return bake(adaptable.model, moments)


def check_bakeable(adaptable: AdaptableModel) -> None:
    """Raise an `InputError` for a method whose prediction no network alone can give."""
    if not adaptable.predicts_by_forward:
        name = type(adaptable.method).__name__
        raise InputError(f"{name} predicts by more than a forward of the network, so it cannot be baked into one")
