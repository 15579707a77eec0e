"""Weather: snow, frost, fog, brightness."""

import numpy as np

from ncttt.data.corruptions.colour import hsv_to_rgb, rgb_to_hsv
from ncttt.data.corruptions.motion import motion_blurred
from ncttt.data.corruptions.pixels import Array, interleaved, planes, truncated, unit
from ncttt.data.corruptions.plasma import plasma
from ncttt.data.corruptions.randomness import Draws
from ncttt.data.corruptions.zoom import zoomed

_RED, _GREEN, _BLUE = 0.299, 0.587, 0.114  # of luminance


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
    """Flakes are noise, enlarged, cut at a threshold and blurred downwards; the scene behind them is whitened."""
    flakes = zoomed(draws.normal(images.shape[1:3]) * std + mean, zoom)
    flakes = truncated(np.where(flakes < threshold, 0, flakes))[..., None]
    falling = unit(motion_blurred(flakes, draws.uniform(-135, -45), radius, sigma))[..., 0]
    scene = unit(planes(images))
    red, green, blue = scene
    grey = _RED * red + _GREEN * green + _BLUE * blue
    whitened = keep * scene + (1 - keep) * np.maximum(scene, grey * 1.5 + 0.5)
    return interleaved(truncated(whitened + (falling + falling[:, ::-1, ::-1])))


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


def fog(images: Array, draws: Draws, amount: float, decay: float) -> Array:
    height, width = images.shape[1:3]
    brightest = unit(images.max(axis=(1, 2, 3)))[:, None, None]
    side = 1 << (max(height, width) - 1).bit_length()
    mist = plasma(draws.uniform(-1, 1, (side * side - 1,)), side, decay)[:, :height, :width]
    return interleaved(truncated((unit(planes(images)) + amount * mist) * brightest / (brightest + amount)))


def brightness(images: Array, draws: Draws, added: float) -> Array:
    hue, saturation, value = rgb_to_hsv(unit(planes(images)))
    return interleaved(truncated(hsv_to_rgb(hue, saturation, np.clip(value + added, 0, 1))))
