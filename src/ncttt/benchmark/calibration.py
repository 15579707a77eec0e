"""The source images that a grid calibrates a method on, where it needs facts of the source and no training."""

from __future__ import annotations

from dataclasses import replace

from ncttt.base.errors import InputError
from ncttt.benchmark.draws import ImageDraw
from ncttt.benchmark.scenarios import Scenario
from ncttt.data.sets.registry import DATA_SETS, data_set
from ncttt.methods import Method

MOST = 2000  # images


def calibration_for(kind: type[Method], draw: ImageDraw) -> Scenario | None:
    """Clean, held-out source images for a method that needs some, of the set that it is measured on; None for others.

    They are of the split `val`, or of `fit` where the grid itself is measured on `val`: 2000 at most, without labels.
    """
    if kind.needs_training() or not kind.has_branch:
        return None
    split = "fit" if draw.split == "val" else "val"
    name = _clean_set(draw, split)
    source = replace(draw, data=name, split=split, count=None, skip=0, corruption=None, severity=None)
    try:
        drawn = source.read()
        if len(drawn.labels) > MOST:
            source = replace(source, count=MOST)
            drawn = source.read()
    except InputError as error:
        raise InputError(
            f"{kind.name} needs the {kind.needs} of the source, measured on the split {split!r} of {name}: {error}"
        ) from None
    return Scenario(source, drawn.digest)


def _clean_set(draw: ImageDraw, split: str) -> str:
    """The set itself, or for one without that split, such as one of corrupted images, the one that has its classes."""
    own = None if draw.folder else data_set(draw.data)
    if own is None or split in own.splits:
        return draw.data
    fitting = [name for name in DATA_SETS if data_set(name).classes == own.classes and split in data_set(name).splits]
    return fitting[0] if fitting else draw.data
