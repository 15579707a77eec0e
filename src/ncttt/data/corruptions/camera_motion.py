"""What a moving camera does: blur along a line, and enlarging about the centre. Snow uses both for its flakes.

Blur along a line is ImageMagick's: a one-sided Gaussian tail read in steps of one pixel along an angle. Enlarging is to
crop, stretch linearly to the old size, and trim.
"""

from functools import lru_cache
from itertools import pairwise
from math import ceil

import numpy as np
from scipy import sparse

from ncttt.data.corruptions.pixels import Array, rounded


def motion_blurred(images: Array, angles: Array, radius: float, sigma: float) -> Array:
    """`images` (N, H, W, C) uint8, each blurred along its own of `angles` (N,), in degrees; edges continue."""
    weights = tail_weights(radius, sigma)
    down, right = tail_offsets(angles, len(weights))
    # Sorted by angle, the images that share an offset lie side by side: slices, instead of a gather for each image.
    order = np.argsort(angles, kind="stable")
    total = _weighted_sum(images[order], down[:, order], right[:, order], weights)
    blurred = np.empty_like(images)
    blurred[order] = rounded(total)
    return blurred


def tail_weights(radius: float, sigma: float) -> Array:
    """Half a Gaussian over 2 * radius + 1 steps, sum 1."""
    steps = np.arange(2 * int(np.ceil(radius)) + 1)
    weights = np.exp(-(steps**2) / (2 * sigma**2))
    return weights / weights.sum()


def tail_offsets(angles: Array, steps: int) -> tuple[Array, Array]:
    """Rows down and columns right, each `(steps, N)` integers; halves rounded down, as ImageMagick does."""
    radians = np.deg2rad(angles)
    along = np.arange(steps)[:, None]
    down = np.ceil(along * np.sin(radians) - 0.5)
    right = np.ceil(along * np.cos(radians) - 0.5)
    return down.astype(int), right.astype(int)


def _weighted_sum(images: Array, down: Array, right: Array, weights: Array) -> Array:
    height, width = images.shape[1:3]
    before = max(0, -int(down.min())), max(0, -int(right.min()))
    after = max(0, int(down.max())), max(0, int(right.max()))
    margins = ((0, 0), (before[0], after[0]), (before[1], after[1]), (0, 0))
    padded = np.pad(images, margins, mode="edge").astype(np.float64)
    total, scratch = np.zeros(images.shape), np.empty(images.shape)
    for weight, rows, columns in zip(weights, down + before[0], right + before[1], strict=True):
        for start, stop in _runs(rows, columns):
            top, left = rows[start], columns[start]
            shifted = padded[start:stop, top : top + height, left : left + width]
            total[start:stop] += np.multiply(shifted, weight, out=scratch[start:stop])
    return total


def _runs(rows: Array, columns: Array) -> list[tuple[int, int]]:
    """The stretches of images with equal offsets, as (start, stop)."""
    changes = np.flatnonzero((np.diff(rows) != 0) | (np.diff(columns) != 0)) + 1
    bounds = [0, *changes.tolist(), len(rows)]
    return list(pairwise(bounds))


def zoomed_positions(size: int, factor: float) -> Array:
    """Where each of `size` pixels of the enlarged axis is read from, `(size,)`, between the old pixels.

    The grid joins the centres of the outermost pixels of the crop, as `scipy.ndimage.zoom` does.
    """
    crop = ceil(size / factor)
    stretched = round(crop * factor)
    step = (crop - 1) / (stretched - 1) if stretched > 1 else 0.0
    positions = np.minimum(np.arange(stretched) * step, crop - 1)
    trim = (stretched - size) // 2
    return positions[trim : trim + size] + (size - crop) // 2


def zoomed(layers: Array, factor: float) -> Array:
    """`layers` (N, H, W) enlarged by `factor` about the centre, the same size."""
    for axis in (1, 2):
        low, high, share = _neighbours(layers.shape[axis], factor)
        share = np.expand_dims(share, tuple(range(1, layers.ndim - axis)))
        layers = layers.take(low, axis) * (1 - share) + layers.take(high, axis) * share
    return layers


def zoomed_mean(images: Array, factors: tuple[float, ...]) -> Array:
    """The mean of `images` (N, H, W, C) and their enlargements by each of `factors`."""
    n, height, width, channels = images.shape
    pixels = np.ascontiguousarray(images.transpose(1, 2, 0, 3)).reshape(height * width, n * channels)
    mean = _mean_operator(height, width, factors) @ pixels
    return mean.reshape(height, width, n, channels).transpose(2, 0, 1, 3)


def _neighbours(size: int, factor: float) -> tuple[Array, Array, Array]:
    positions = zoomed_positions(size, factor)
    low = np.floor(positions).astype(np.intp)
    return low, np.minimum(low + 1, size - 1), positions - low


@lru_cache(maxsize=8)
def _mean_operator(height: int, width: int, factors: tuple[float, ...]) -> sparse.csr_array:
    """All enlargements and their mean as one sparse matrix on pixels: what the factors share is added up beforehand."""
    total = sparse.eye_array(height * width, format="csr")
    for factor in factors:
        total = total + sparse.kron(_axis_operator(height, factor), _axis_operator(width, factor), format="csr")
    return sparse.csr_array(total / (len(factors) + 1))


def _axis_operator(size: int, factor: float) -> sparse.csr_array:
    low, high, share = _neighbours(size, factor)
    rows = np.arange(size)
    entries = (np.concatenate([1 - share, share]), (np.tile(rows, 2), np.concatenate([low, high])))
    return sparse.csr_array(sparse.coo_array(entries, shape=(size, size)))
