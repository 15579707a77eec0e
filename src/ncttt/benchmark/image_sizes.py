"""To what image files are decoded for a grid: the size and the way that its checkpoints were trained with."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ncttt.base.errors import InputError
from ncttt.benchmark.draws import ImageDraw
from ncttt.benchmark.grid import Grid
from ncttt.data.files.resizing import exact, side_of
from ncttt.zoo.stored import description


def sized(draw: ImageDraw, grid: Grid, checkpoints: Iterable[str]) -> ImageDraw:
    """The draw with the size of its images and how they get it, if they come from files; else as it is."""
    if not draw.read().decoded:
        return draw
    told = grid.image_size is not None and grid.resize is not None  # as for a tuning, whose models are not trained yet
    described = {} if told else {name: description(name) for name in dict.fromkeys(checkpoints)}
    size = grid.image_size
    if size is None:
        size = _common({name: side_of(facts["input_shape"], name) for name, facts in described.items()}, "image_size")
    resize = grid.resize
    if resize is None:
        resize = _common({name: exact(facts["resize"], size) for name, facts in described.items()}, "resize")
    return replace(draw, image_size=size, resize=exact(resize, size))


def _common(values: dict[str, Any], what: str) -> Any:
    """What all checkpoints have in common; an error that names two that differ."""
    (first, value), *others = values.items()
    for other, found in others:
        if found != value:
            advice = "give one for all, or make a grid for each" if what == "resize" else "make a grid for each"
            raise InputError(f"{first} was trained with {what} {value}, {other} with {found}: {advice}")
    return value
