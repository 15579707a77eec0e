"""Drops on the lens: bright water at the first three severities, mud that hides the scene at the last two."""

import numpy as np
from scipy import ndimage

from ncttt.data.corruptions.edges import canny
from ncttt.data.corruptions.pixels import Array, rounded, truncated, unit
from ncttt.data.corruptions.randomness import Draws

_WATER = np.array([175, 238, 238]) / 255  # pale turquoise
_MUD = np.array([63, 42, 20]) / 255
_RELIEF = np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]])  # light from the upper left
_FAR = 20.0


def spatter(
    images: Array,
    draws: Draws,
    mean: float,
    std: float,
    sigma: float,
    threshold: float,
    amount: float,
    mud: float,
) -> Array:
    noise = draws.normal(images.shape[1:3]).astype(np.float64) * std + mean
    liquid = ndimage.gaussian_filter(noise, (0, sigma, sigma), mode="nearest")
    liquid[liquid < threshold] = 0
    scene = unit(images)
    if mud:
        cover = ndimage.gaussian_filter((liquid > threshold).astype(float), (0, amount, amount), mode="nearest")
        cover[cover < 0.8] = 0
        return truncated(scene * (1 - cover[..., None]) + _MUD * cover[..., None])
    return truncated(scene + (_sheen(liquid) * amount)[..., None] * _WATER)


def _sheen(liquid: Array) -> Array:
    """How much light each pixel of `liquid` (N, H, W) adds, at most 1 in an image; an image without drops adds none."""
    depth = (np.clip(liquid, 0, 1) * 255).astype(np.uint8)
    distance = np.minimum(_distance_to(canny(depth, 50, 150)), _FAR)
    relief = equalized(_box(distance).astype(np.uint8)).astype(np.float64)
    relief = rounded(ndimage.correlate(relief, _RELIEF[None], mode="mirror"))
    light = depth * rounded(_box(relief.astype(np.float64))).astype(np.float64)
    brightest = light.max(axis=(1, 2), keepdims=True)
    return light / np.where(brightest == 0, 1, brightest)


def _distance_to(edges: Array) -> Array:
    """Pixels to the nearest edge of the same image; at least `_FAR` where an image has none."""
    if not edges.any():
        return np.full(edges.shape, _FAR)
    apart = 1e6  # images lie so far from each other that none sees the edges of the next
    return np.asarray(ndimage.distance_transform_edt(~edges, sampling=(apart, 1, 1)))


def _box(layers: Array) -> Array:
    for axis in (1, 2):
        layers = ndimage.correlate1d(layers, np.ones(3), axis, mode="mirror")
    return layers / 9


def equalized(layers: Array) -> Array:
    """`layers` (N, H, W) uint8 with the histogram of each spread over 0..255; an image of one level stays as it is."""
    n, height, width = layers.shape
    total = height * width
    cells = layers.reshape(n, -1) + np.arange(n)[:, None] * 256
    counts = np.bincount(cells.ravel(), minlength=n * 256).reshape(n, 256)
    first = counts[np.arange(n), (counts > 0).argmax(axis=1)][:, None]
    above = np.maximum(np.cumsum(counts, axis=1) - first, 0)
    # Single precision and halves to even, as OpenCV computes it.
    scale = np.float32(255) / np.maximum(total - first, 1).astype(np.float32)
    spread = np.clip(np.rint(above.astype(np.float32) * scale), 0, 255)
    table = np.where(first == total, np.arange(256), spread).astype(np.uint8)
    return table.ravel()[cells].reshape(layers.shape)
