"""Enlarging about the centre: crop, stretch linearly to the old size, trim. Zoom blur and snow share it."""

from functools import lru_cache
from math import ceil

import numpy as np
from scipy import sparse

Array = np.ndarray


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
