"""Convolution with a symmetric kernel and mirrored borders, as a product in the cosine basis.

On an axis of n pixels mirrored about the centres of the outermost ones, cos(pi k i / (n - 1)) for k = 0 .. n - 1 are
the eigenvectors of every symmetric kernel. Four small matrix products thus replace an addition for each
tap of the kernel.
"""

from functools import lru_cache
from threading import Lock

import numpy as np
from threadpoolctl import ThreadpoolController

Array = np.ndarray
# The number of BLAS threads belongs to the process: two limits that overlap would restore each other's, for good.
_LIMITING = Lock()


def convolved(images: Array, kernel: Array) -> Array:
    """`images` (N, H, W, C) and a `kernel` of odd sides that reads the same backwards in both directions."""
    height, width = images.shape[1:3]
    planes = np.ascontiguousarray(images.transpose(0, 3, 1, 2))
    # Matrices this small gain nothing from threads; on busy cores, waiting for them costs fifty times the work.
    with _LIMITING, _threads().limit(limits=1, user_api="blas"):
        waves = _analysis(height) @ (planes @ _analysis(width).T)
        waves *= _gain(height, width, kernel)
        blurred = _synthesis(height) @ (waves @ _synthesis(width).T)
    return blurred.transpose(0, 2, 3, 1)


@lru_cache(maxsize=1)
def _threads() -> ThreadpoolController:
    return ThreadpoolController()


def _gain(height: int, width: int, kernel: Array) -> Array:
    """What the kernel does to each wave, `(height, width)`."""
    down, right = (np.arange(side) - side // 2 for side in kernel.shape)
    return _waves(height, down).T @ kernel @ _waves(width, right)


def _waves(size: int, places: Array) -> Array:
    """Each wave of an axis of `size` pixels at `places`, `(places, size)`."""
    return np.cos(np.pi / (size - 1) * places[:, None] * np.arange(size))


@lru_cache(maxsize=8)
def _synthesis(size: int) -> Array:
    return _waves(size, np.arange(size))


@lru_cache(maxsize=8)
def _analysis(size: int) -> Array:
    return np.linalg.inv(_synthesis(size))
