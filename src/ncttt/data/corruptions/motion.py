"""Blur along a line, as ImageMagick defines it: a one-sided Gaussian tail read in steps of one pixel along an angle."""

from itertools import pairwise

import numpy as np

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
