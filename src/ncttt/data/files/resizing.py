"""`resize`: how a photograph of any size becomes a square of `size` pixels; wherever image files are read.

| `resize` | what is done |
|---|---|
| `square` | the central square is scaled to `size`; the default |
| `crop` | the shorter side is scaled to 256/224 of `size`, then the centre of `size` x `size` pixels is cut out |
| `crop(R)` | the same with a shorter side of R pixels |
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ncttt.base.errors import InputError

SQUARE, CROP = "square", "crop"
Box = tuple[float, float, float, float]


def shorter_side(resize: str, size: int) -> int | None:
    """To how many pixels the shorter side is scaled before `size` of them are cut out; None for `square`.

    >>> shorter_side("crop", 224), shorter_side("crop", 32), shorter_side("crop(40)", 32), shorter_side("square", 32)
    (256, 37, 40, None)
    """
    match = re.fullmatch(r"crop(?:\((\d{1,9})\))?", resize) if isinstance(resize, str) else None
    if not match:
        if resize == SQUARE:
            return None
        raise InputError(f"resize must be 'square', 'crop' or 'crop(R)', such as 'crop(256)'; found {resize!r}")
    side = int(match[1]) if match[1] else round(size * 256 / 224)
    if side < size:
        raise InputError(f"resize {resize!r} gives a shorter side of {side} pixels, too few to cut {size} out of it")
    return side


def exact(resize: str, size: int) -> str:
    """The same way with its number: two ways that give the same images of `size` pixels have the same text.

    >>> exact("crop", 224), exact("square", 224)
    ('crop(256)', 'square')
    """
    side = shorter_side(resize, size)
    return SQUARE if side is None else f"crop({side})"


def check_image_size(size: Any) -> None:
    """Raise an `InputError` unless this is a number of pixels."""
    if isinstance(size, bool) or not hasattr(size, "__index__") or size < 1:
        raise InputError(f"image_size must be a number of pixels from 1, found {size!r}")


def side_of(shape: Sequence[int], whose: str) -> int:
    """The side of the squares that a model of this input shape (channels, height, width) needs.

    >>> side_of((3, 32, 32), "small")
    32
    """
    if shape[0] != 3 or shape[1] != shape[2]:
        raise InputError(f"image files become RGB squares, but {whose} was made for images of {tuple(shape)}")
    return shape[1]


def kept_part(width: int, height: int, size: int, resize: str) -> Box:
    """What of an image, in its own pixels, becomes the square: left, top, right, bottom.

    >>> kept_part(40, 20, 10, "square"), kept_part(40, 20, 10, "crop(20)")
    ((10, 0, 30, 20), (15.0, 5.0, 25.0, 15.0))
    """
    side, shorter = shorter_side(resize, size), min(width, height)
    if side is None:
        left, top = (width - shorter) // 2, (height - shorter) // 2
        return left, top, left + shorter, top + shorter
    left, right = _kept_of_side(width, shorter, side, size)
    top, bottom = _kept_of_side(height, shorter, side, size)
    return left, top, right, bottom


def _kept_of_side(length: int, shorter: int, side: int, size: int) -> tuple[float, float]:
    scaled = side * length // shorter  # pixels of this side if the whole image were scaled, and cut at `start`
    start = round((scaled - size) / 2)
    return start * length / scaled, min((start + size) * length / scaled, length)
