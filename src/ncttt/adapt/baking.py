"""Baking: the model of an adapter with the statistics that a batch was predicted by."""

from __future__ import annotations

from torch import Tensor

from ncttt.adapt.batch import AdaptableModel
from ncttt.adapt.state import LastBatch
from ncttt.base.errors import InputError
from ncttt.model.baked import Baked, bake, used_moments
from ncttt.model.norm import batch_share, predicting


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
