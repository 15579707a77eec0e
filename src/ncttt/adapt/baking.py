"""Baking: the model of an adapter with the statistics that a batch was predicted by."""

from __future__ import annotations

from torch import Tensor

from ncttt.adapt.batch import AdaptableModel
from ncttt.adapt.state import LastBatch
from ncttt.base.errors import InputError
from ncttt.model.baked import Baked, bake, used_moments
from ncttt.model.norm import batch_share, moves_in_passing, standing
from ncttt.model.policies import parse


def baked_as_it_stands(adaptable: AdaptableModel, images: Tensor | LastBatch) -> Baked:
    """The model with its weights as they are, and with the statistics that a prediction of the images uses."""
    twice = adaptable.method.looks_twice
    policy = standing(adaptable.norm[1])
    moved = moves_in_passing(adaptable.norm[1]) and len(images) > 0  # a state that was loaded has no last batch
    if not moved and not batch_share(policy):
        return bake(adaptable.model, {}, twice)
    images = images.images() if isinstance(images, LastBatch) else images
    with used_moments(adaptable.model, policy) as moments:
        adaptable.predict_once(images.to(adaptable.model.mean))
    return bake(adaptable.model, moments, twice)  # the moved buffers themselves, where one pass has moved and used them


def check_bakeable(adaptable: AdaptableModel) -> None:
    """Raise an `InputError` for a method or a policy whose prediction no network alone can give."""
    if not adaptable.predicts_by_forward:
        name = type(adaptable.method).__name__
        raise InputError(f"{name} predicts by more than a forward of the network, so it cannot be baked into one")
    if parse(adaptable.norm[1]).kind == "instance" and adaptable.model.batch_norms():
        raise InputError("statistics of each image cannot be baked into a network; use norm='prior(16)' or the like")
