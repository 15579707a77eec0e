"""One call for all corruptions: checks its input, then works through the batch in blocks that fit the cache."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ncttt.base.errors import InputError
from ncttt.data.corruptions.randomness import Draws
from ncttt.data.corruptions.registry import SEVERITIES, find_corruption, table_for

Array = np.ndarray
SIDES = (32, 224)
_BLOCK_VALUES = 2**18  # values worked on at once; a few megabytes as float64


def corrupt(
    images: Array,
    corruption: str,
    severity: int,
    *,
    seed: int = 0,
    indices: Sequence[int] | Array | None = None,
    constants: str | None = None,
    frost: str | Path | None = None,
) -> Array:
    """A corrupted copy of `images` (N, H, W, 3) uint8, sides from 32 to 224.

    `corruption` is a name, or the address `module:function` of one of your own. `indices` are the images' places in
    their set (default 0, 1, ...): with `seed` they alone decide what is random in an image, whatever batch it comes in.
    `constants` is "cifar", "imagenet" or None (by size); `frost` a folder of photographs, or None for procedural ice.

    >>> images = np.full((2, 32, 32, 3), 100, np.uint8)
    >>> corrupt(images, "brightness", 5)[0, 0, 0].tolist()
    [176, 176, 176]
    """
    check(images, corruption, severity, seed)
    severity, seed = int(severity), int(seed)
    places = _checked_indices(images, indices)
    height, width = images.shape[1:3]
    table = table_for(height, width, constants)
    chosen = find_corruption(corruption)
    settings: tuple = chosen.tables[table][severity - 1]
    if chosen.textures is not None:
        settings = (*settings, chosen.textures(height, width, table, seed, frost))
    result = np.empty(images.shape, np.uint8)
    size = max(1, _BLOCK_VALUES // (height * width * 3))
    for start in range(0, len(images), size):
        block = slice(start, start + size)
        draws = Draws(seed, corruption, severity, places[block])
        result[block] = chosen(np.asarray(images[block]), draws, *settings)
    return result


def is_whole(value: object) -> bool:
    """Whether `value` is an integer; True and 1.0 equal 1, but would name another stream of random numbers.

    >>> is_whole(np.uint8(1)), is_whole(True), is_whole(1.0)
    (True, False, False)
    """
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def check(images: Array, corruption: str, severity: int, seed: int) -> None:
    """Refuse what cannot be corrupted, in words."""
    if not is_whole(seed) or seed < 0:
        raise InputError(f"seed {seed!r}; expected an integer from 0")
    find_corruption(corruption)
    if not is_whole(severity) or severity not in SEVERITIES:
        raise InputError(f"severity {severity!r} of {corruption}; expected 1, 2, 3, 4 or 5")
    if not isinstance(images, np.ndarray) or images.dtype != np.uint8:
        found = getattr(images, "dtype", type(images).__name__)
        raise InputError(f"images to corrupt are {found}; expected a numpy array of uint8")
    if images.ndim != 4 or images.shape[3] != 3:
        raise InputError(
            f"images to corrupt have shape {images.shape}; expected (N, H, W, 3)"
            f"{'; repeat the channel: np.repeat(images, 3, 3)' if images.shape[3:] == (1,) else ''}"
        )
    if not all(SIDES[0] <= side <= SIDES[1] for side in images.shape[1:3]):
        height, width = images.shape[1:3]
        raise InputError(f"images to corrupt are {height} x {width} pixels; expected sides from 32 to 224")


def _checked_indices(images: Array, indices: Sequence[int] | Array | None) -> Sequence[int] | Array:
    if indices is None:
        return range(len(images))
    try:
        places = np.asarray(indices)
    except ValueError as error:
        raise InputError(f"indices {indices!r}; expected one integer for each image") from error
    if places.ndim != 1 or (places.size and places.dtype.kind not in "iu"):
        found = f"{places.dtype} of shape {places.shape}"
        raise InputError(f"indices are {found}; expected one integer of at most 64 bits for each image")
    if len(places) != len(images):
        raise InputError(f"{len(places)} indices for {len(images)} images; expected one for each")
    if places.min(initial=0) < 0:
        raise InputError(f"index {places.min()} of an image is negative; expected its place in the set, from 0")
    return places
