"""`calibrated`: any classifier with the facts of the source that a method needs, in one call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from ncttt.base.errors import InputError
from ncttt.model.branched import Branched, attach

if TYPE_CHECKING:
    from ncttt.methods.base import Method


def calibrated(
    classifier: nn.Module,
    method: Method,
    data: Any,
    mean: Sequence[float] | None = None,
    std: Sequence[float] | None = None,
) -> Branched:
    """A model for an `Adapter` of a method that needs facts of the source, which are measured here on source images.

    `classifier` is any network, or a model that was trained for another method, whose classifier and normalisation are
    taken then. It is wrapped, not copied. `data` is what `Branched.calibrate` takes: batches of images in [0, 1], an
    `ImageSet`, or a Dataset or DataLoader of PyTorch; labels are not looked at.

    >>> import ncttt, torch
    >>> model = calibrated(ncttt.models.small(), ncttt.Tent(), [torch.rand(8, 3, 32, 32)])
    >>> adapter = ncttt.Adapter(model, stop="source", protocol="online")
    """
    if method.needs_training():
        raise InputError(f"{type(method).__name__} needs a training of its own: ncttt.attach, then ncttt.train")
    first, batches = _first(data)
    if not isinstance(classifier, Branched):
        model = attach(classifier, None, method, first, mean, std)
    elif mean is not None or std is not None:
        raise InputError("mean and std are for plain modules; this model has a normalisation of its own")
    else:
        own = {name: getattr(classifier, name).flatten().tolist() for name in ("mean", "std")}
        model = attach(classifier.classifier, None, method, first, **(own if classifier.normalises else {}))
        model.classes, model.resize = classifier.classes, classifier.resize
    model.calibrate(batches)
    return model


def _first(data: Any) -> tuple[Tensor, Any]:
    """The images of the first batch, and all batches."""
    from ncttt.data.batching import source_batches  # needs Pillow, without which an Adapter works

    batches = source_batches(data)
    try:
        each = iter(batches)
        first = next(each)
    except TypeError:
        raise InputError(f"calibration needs batches of source images; found {data!r:.60}") from None
    except StopIteration:
        raise InputError("calibration needs at least one batch of source images; found none") from None
    whole = chain([first], each) if isinstance(batches, Iterator) else batches
    return first if isinstance(first, Tensor) else first[0], whole
