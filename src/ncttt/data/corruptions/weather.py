"""Weather: snow, frost, fog, brightness."""

import numpy as np

from ncttt.data.corruptions.camera_motion import motion_blurred, zoomed
from ncttt.data.corruptions.pixels import Array, hsv_to_rgb, interleaved, planes, rgb_to_hsv, truncated, unit
from ncttt.data.corruptions.randomness import Draws
from ncttt.data.corruptions.registry import corruption
from ncttt.data.corruptions.textures import textures_for

_RED, _GREEN, _BLUE = 0.299, 0.587, 0.114  # of luminance
_FIRST_WOBBLE = 100.0


@corruption(
    cifar=(
        (0.1, 0.2, 1, 0.6, 8, 3, 0.95),
        (0.1, 0.2, 1, 0.5, 10, 4, 0.9),
        (0.15, 0.3, 1.75, 0.55, 10, 4, 0.9),
        (0.25, 0.3, 2.25, 0.6, 12, 6, 0.85),
        (0.3, 0.3, 1.25, 0.65, 14, 12, 0.8),
    ),
    imagenet=(
        (0.1, 0.3, 3, 0.5, 10, 4, 0.8),
        (0.2, 0.3, 2, 0.5, 12, 4, 0.7),
        (0.55, 0.3, 4, 0.9, 12, 8, 0.7),
        (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65),
        (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
    ),
)
def snow(
    images: Array,
    draws: Draws,
    mean: float,
    std: float,
    zoom: float,
    threshold: float,
    radius: float,
    sigma: float,
    keep: float,
) -> Array:
    """Flakes are noise, enlarged, cut at a threshold and blurred downwards; the image behind them is whitened."""
    flakes = zoomed(draws.normal(images.shape[1:3]) * std + mean, zoom)
    flakes = truncated(np.where(flakes < threshold, 0, flakes))[..., None]
    falling = unit(motion_blurred(flakes, draws.uniform(-135, -45), radius, sigma))[..., 0]
    behind = unit(planes(images))
    red, green, blue = behind
    grey = _RED * red + _GREEN * green + _BLUE * blue
    whitened = keep * behind + (1 - keep) * np.maximum(behind, grey * 1.5 + 0.5)
    return interleaved(truncated(whitened + (falling + falling[:, ::-1, ::-1])))


@corruption(
    cifar=((1, 0.2), (1, 0.3), (0.9, 0.4), (0.85, 0.4), (0.75, 0.45)),
    imagenet=((1, 0.4), (0.8, 0.6), (0.7, 0.7), (0.65, 0.7), (0.6, 0.75)),
    textures=textures_for,
)
def frost(images: Array, draws: Draws, keep: float, amount: float, textures: list[Array]) -> Array:
    """A weighted sum with a random crop of one of `textures`, (H', W', 3) uint8, none smaller than the images."""
    height, width = images.shape[1:3]
    which = draws.integers(0, len(textures))
    place = draws.uniform(0, 1, (2,))
    crops = np.empty_like(images)
    for kind, texture in enumerate(textures):
        chosen = np.flatnonzero(which == kind)
        room = np.array(texture.shape[:2]) - (height, width)
        top, left = (place[chosen] * np.maximum(room, 1)).astype(np.intp).T
        windows = np.lib.stride_tricks.sliding_window_view(texture, (height, width), axis=(0, 1))
        crops[chosen] = np.moveaxis(windows[top, left], 1, -1)
    mixed = keep * images + amount * crops
    return np.clip(mixed, 0, 255).astype(np.uint8)


@corruption(
    cifar=((0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75)),
    imagenet=((1.5, 2), (2, 2), (2.5, 1.7), (2.5, 1.5), (3, 1.4)),
)
def fog(images: Array, draws: Draws, amount: float, decay: float) -> Array:
    height, width = images.shape[1:3]
    brightest = unit(images.max(axis=(1, 2, 3)))[:, None, None]
    side = 1 << (max(height, width) - 1).bit_length()
    mist = plasma(draws.uniform(-1, 1, (side * side - 1,)), side, decay)[:, :height, :width]
    return interleaved(truncated((unit(planes(images)) + amount * mist) * brightest / (brightest + amount)))


def plasma(numbers: Array, side: int, decay: float) -> Array:
    """Clouds by the diamond-square algorithm, for a batch at once; the map wraps round at its edges.

    Heights `(N, side, side)` in [0, 1] from `numbers` (N, side * side - 1) uniform in [-1, 1]; side a power of 2.
    """
    heights = np.zeros((len(numbers), side, side))
    used, step, wobble = 0, side, _FIRST_WOBBLE

    def raised(neighbours: Array) -> Array:
        """A quarter of the sum of four neighbours plus a random part.

        The random part has the SQUARE of the wobble as its size: the benchmark multiplies by it twice.
        """
        nonlocal used
        count = neighbours[0].size
        part = numbers[:, used : used + count].reshape(neighbours.shape)
        used += count
        return neighbours / 4 + wobble * (wobble * part)

    while step >= 2:
        half = step // 2
        corners = heights[:, ::step, ::step]
        pairs = corners + np.roll(corners, -1, axis=1)
        centres = raised(pairs + np.roll(pairs, -1, axis=2))
        heights[:, half::step, half::step] = centres
        beside = corners + np.roll(corners, -1, axis=2)
        heights[:, ::step, half::step] = raised(centres + np.roll(centres, 1, axis=1) + beside)
        heights[:, half::step, ::step] = raised(centres + np.roll(centres, 1, axis=2) + pairs)
        step, wobble = half, wobble / decay
    heights -= heights.min(axis=(1, 2), keepdims=True)
    return heights / heights.max(axis=(1, 2), keepdims=True)


@corruption(
    cifar=((0.05,), (0.1,), (0.15,), (0.2,), (0.3,)),
    imagenet=((0.1,), (0.2,), (0.3,), (0.4,), (0.5,)),
)
def brightness(images: Array, draws: Draws, added: float) -> Array:
    hue, saturation, value = rgb_to_hsv(unit(planes(images)))
    return interleaved(truncated(hsv_to_rgb(hue, saturation, np.clip(value + added, 0, 1))))
