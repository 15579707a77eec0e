"""One item of a Dataset: which part is the image, which the label, and both as arrays and numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from PIL import Image
from torch import Tensor

from ncttt.base.errors import InputError
from ncttt.data.files.image_files import to_rgb

IMAGE_KEYS = ("image", "images", "img", "pixel_values", "input", "x")
LABEL_KEYS = ("label", "labels", "target", "targets", "class", "y", "fine_label")
GREY = ("1", "L", "I", "I;16", "F")  # modes of Pillow with one channel


def parts(item: Any, keys: Sequence[str] | None = None) -> tuple[Any, Any]:
    """Image and label of an item, or of a batch of them; the label is None where there is none.

    >>> parts({"img": 1, "label": 2}), parts((1, 2, "more")), parts((1,))
    ((1, 2), (1, 2), (1, None))
    """
    if isinstance(item, Mapping):
        found = [_key(item, keys[:1] if keys else IMAGE_KEYS), _key(item, keys[1:] if keys else LABEL_KEYS)]
        if found[0] is None:
            raise InputError(f"an item has no image under {list(item)}; say keys=('image', 'label') of yours")
        return item[found[0]], None if found[1] is None else item[found[1]]
    if isinstance(item, tuple | list):
        return item[0], item[1] if len(item) > 1 else None
    return item, None


def _key(item: Mapping[str, Any], names: Sequence[str]) -> str | None:
    return next((name for name in names if name in item), None)


def pixels_of(image: Any, channels: int | None = None) -> np.ndarray:
    """An image as uint8 or float32 (H, W, C), C being 1 or 3; a grey one of Pillow gets three where others have them.

    >>> import torch
    >>> pixels_of(torch.zeros(3, 8, 9)).shape, pixels_of(np.zeros((8, 9), np.uint8)).shape
    ((8, 9, 3), (8, 9, 1))
    """
    if isinstance(image, Image.Image):
        keeps_grey = image.mode in GREY and channels != 3
        array = np.asarray(to_rgb(image))
        return array[..., :1] if keeps_grey else array
    first = isinstance(image, Tensor)  # tensors have the channels first, arrays last, where both are possible
    if isinstance(image, Tensor):
        image = image.detach().cpu()
        image = (image.float() if image.is_floating_point() else image).numpy()
    if not isinstance(image, np.ndarray) or not (image.dtype == np.uint8 or image.dtype.kind == "f"):
        found = f"{image.dtype} {image.shape}" if isinstance(image, np.ndarray) else type(image).__name__
        raise InputError(f"an image must be a tensor, an array or of Pillow, uint8 or float; found {found}")
    array = image if image.dtype == np.uint8 else image.astype(np.float32, copy=False)
    return _channels_last(array, first)


def _channels_last(array: np.ndarray, first: bool) -> np.ndarray:
    if array.ndim == 2:
        return array[..., None]
    places = (0, 2) if first else (2, 0)
    place = next((place for place in places if array.ndim == 3 and array.shape[place] in (1, 3)), None)
    if place is None:
        raise InputError(f"an image must have one or three channels, (C, H, W) or (H, W, C); found {array.shape}")
    return np.moveaxis(array, place, 2)


def label_of(label: Any, index: int) -> int:
    """A label as a number; an error that names the item unless it is one.

    >>> import torch
    >>> label_of(torch.tensor(3), 0), label_of(np.uint8(1), 0)
    (3, 1)
    """
    value = np.asarray(label)
    if value.size != 1 or value.dtype.kind not in "iub":
        raise InputError(f"the label of item {index} is {label!r:.60}; expected the number of a class")
    return int(value.item())
