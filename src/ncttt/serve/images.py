"""Uploads: the images of a request, decoded within limits to the size that the model was made for."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence

import numpy as np

from ncttt.base.errors import InputError
from ncttt.data.files.image_files import decode_bytes
from ncttt.data.files.resizing import SQUARE

# What the thread that answers may decode itself, a millisecond's work.
SMALL_BYTES, SMALL_PIXELS = 16 << 10, 1 << 16


def decoded(
    contents: Sequence[bytes], names: Sequence[str], size: int, resize: str = SQUARE, *, most_pixels: int
) -> np.ndarray:
    """The images in files of these contents, as uint8 (N, size, size, 3); errors call them by these names."""
    images = [
        decode_bytes(content, name, size, resize, most_pixels) for content, name in zip(contents, names, strict=True)
    ]
    return np.stack(images)


def decoded_at_once(contents: Sequence[bytes], size: int, resize: str = SQUARE) -> np.ndarray | None:
    """The same if it takes less time than to hand it to another thread; None for large images, and for damaged ones."""
    if sum(map(len, contents)) > SMALL_BYTES:
        return None
    try:
        return decoded(contents, [""] * len(contents), size, resize, most_pixels=SMALL_PIXELS // len(contents))
    except InputError:
        return None


def from_base64(text: str, name: str) -> bytes:
    """The bytes of an image in base64, or an `InputError`.

    >>> from_base64("aGk=", "images[0]")
    b'hi'
    """
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InputError(f"{name} is no base64 text: {error}") from None


def check_count(images: int, most: int) -> None:
    """Raise an `InputError` unless a request has an image, and no more than so many."""
    if not 1 <= images <= most:
        raise InputError(f"a request has 1 to {most} images; found {images}")
