"""Drops on the lens: bright water at the first three severities, mud that hides the image at the last two."""

import numpy as np
from scipy import ndimage

from ncttt.data.corruptions.pixels import Array, rounded, truncated, unit
from ncttt.data.corruptions.randomness import Draws
from ncttt.data.corruptions.registry import corruption

_WATER = np.array([175, 238, 238]) / 255  # pale turquoise
_MUD = np.array([63, 42, 20]) / 255
_RELIEF = np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]])  # light from the upper left
_FAR = 20.0
_PLANE = np.zeros((3, 3, 3), bool)
_PLANE[1] = True  # neighbours within an image, never from one image to the next


@corruption(
    cifar=(
        (0.62, 0.1, 0.7, 0.7, 0.5, 0),
        (0.65, 0.1, 0.8, 0.7, 0.5, 0),
        (0.65, 0.3, 1, 0.69, 0.5, 0),
        (0.65, 0.1, 0.7, 0.69, 0.6, 1),
        (0.65, 0.1, 0.5, 0.68, 0.6, 1),
    ),
    imagenet=(
        (0.65, 0.3, 4, 0.69, 0.6, 0),
        (0.65, 0.3, 3, 0.68, 0.6, 0),
        (0.65, 0.3, 2, 0.68, 0.5, 0),
        (0.65, 0.3, 1, 0.65, 1.5, 1),
        (0.67, 0.4, 1, 0.65, 1.5, 1),
    ),
    extra=True,
)
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
    clean = unit(images)
    if mud:
        cover = ndimage.gaussian_filter((liquid > threshold).astype(float), (0, amount, amount), mode="nearest")
        cover[cover < 0.8] = 0
        return truncated(clean * (1 - cover[..., None]) + _MUD * cover[..., None])
    return truncated(clean + (_sheen(liquid) * amount)[..., None] * _WATER)


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


def canny(images: Array, low: int, high: int) -> Array:
    """True on Canny's edges of grey 8-bit images, `(N, H, W)`.

    L1 gradient of 3 x 3 Sobel filters, thinning, hysteresis: ridges above `low` that touch one above `high`.
    """
    grey = images.astype(np.int32)
    across = _sobel(grey, along=2)
    down = _sobel(grey, along=1)
    strength = np.abs(across) + np.abs(down)
    ridge = _thinned(strength, across, down)
    weak, strong = ridge & (strength > low), ridge & (strength > high)
    labels = np.zeros(weak.shape, np.int32)
    ndimage.label(weak, structure=_PLANE, output=labels)
    kept = np.zeros(labels.max(initial=0) + 1, bool)
    kept[labels[strong]] = True
    return kept[labels] & weak


def _sobel(grey: Array, along: int) -> Array:
    smooth = ndimage.correlate1d(grey, [1, 2, 1], axis=3 - along, mode="nearest")
    return ndimage.correlate1d(smooth, [-1, 0, 1], axis=along, mode="nearest")


def _thinned(strength: Array, across: Array, down: Array) -> Array:
    """Pixels whose gradient is not exceeded by its two neighbours along the gradient, by sector of 45 degrees."""
    padded = np.pad(strength, ((0, 0), (1, 1), (1, 1)))
    height, width = strength.shape[1:]

    def neighbour(dy: int, dx: int) -> Array:
        return padded[:, 1 + dy : 1 + dy + height, 1 + dx : 1 + dx + width]

    # tan of 22.5 and 67.5 degrees in 15-bit fixed point
    x, y = np.abs(across), np.abs(down).astype(np.int64) << 15
    flat = x * 13573
    steep = flat + (x.astype(np.int64) << 16)
    same = (across ^ down) >= 0
    horizontal = (strength > neighbour(0, -1)) & (strength >= neighbour(0, 1))
    vertical = (strength > neighbour(-1, 0)) & (strength >= neighbour(1, 0))
    falling = (strength > neighbour(-1, -1)) & (strength > neighbour(1, 1))
    rising = (strength > neighbour(-1, 1)) & (strength > neighbour(1, -1))
    diagonal = np.where(same, falling, rising)
    return np.where(y < flat, horizontal, np.where(y > steep, vertical, diagonal))
