"""Blurs: of the lens (defocus, Gaussian), of frosted glass, of motion, of a camera rushing forward (zoom)."""

from functools import lru_cache
from threading import Lock

import numpy as np
from scipy import ndimage
from threadpoolctl import ThreadpoolController

from ncttt.data.corruptions.camera_motion import motion_blurred, zoomed_mean
from ncttt.data.corruptions.pixels import Array, truncated, truncated_sums, unit
from ncttt.data.corruptions.randomness import Draws
from ncttt.data.corruptions.registry import corruption

# The number of BLAS threads belongs to the process: two limits that overlap would restore each other's, for good.
_LIMITING = Lock()


@corruption(
    cifar=((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1)),
    imagenet=((3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5)),
)
def defocus_blur(images: Array, draws: Draws, radius: float, alias_blur: float) -> Array:
    return truncated_sums(convolved(unit(images), disk(radius, alias_blur)))


@lru_cache(maxsize=16)
def disk(radius: float, alias_blur: float) -> Array:
    """A disk, its edge softened by a small Gaussian: the image of a point out of focus; odd side, sum about 1."""
    half = 8 if radius <= 8 else int(radius)
    across = np.arange(-half, half + 1)
    inside = (across[:, None] ** 2 + across**2 <= radius**2).astype(float)
    reach = 1 if radius <= 8 else 2
    weights = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * alias_blur**2))
    weights /= weights.sum()
    kernel = inside / inside.sum()
    for axis in (0, 1):
        kernel = ndimage.correlate1d(kernel, weights, axis, mode="mirror")
    return kernel


@corruption(
    cifar=((0.05, 1, 1), (0.25, 1, 1), (0.4, 1, 1), (0.25, 1, 2), (0.4, 1, 2)),
    imagenet=((0.7, 1, 2), (0.9, 2, 1), (1, 2, 3), (1.1, 3, 2), (1.5, 4, 2)),
)
def glass_blur(images: Array, draws: Draws, sigma: float, reach: int, times: int) -> Array:
    """Blurred, each pixel replaced by a near one `times` over, and blurred again."""
    blurred = truncated(_smooth(unit(images), sigma))
    n, height, width, channels = blurred.shape
    shifts = draws.integers(-reach, reach, (times, height - 2 * reach, width - 2 * reach, 2))
    for time in range(times):
        source = replaced_from(shifts[:, time, :, :, 1], shifts[:, time, :, :, 0], height, width, reach)
        blurred = blurred.reshape(-1, channels)[source.reshape(-1)].reshape(n, height, width, channels)
    return truncated(_smooth(unit(blurred), sigma))


def replaced_from(down: Array, right: Array, height: int, width: int, reach: int) -> Array:
    """For each pixel of a batch, the flat index of the pixel whose old value it ends with, `(N, H, W)`.

    The benchmark visits rows H-reach ... reach+1 and columns likewise, downwards, and means to swap each pixel with one
    at a random offset (`down`, `right`, (N, rows, columns) in that order). Its swap, on views of one array, only copies
    the neighbour over the pixel, and so do we. A neighbour visited earlier already holds a copy, so chains of copies
    are followed to their end; doubling the jump finds it in a few gathers instead of a loop over all pixels.
    """
    n = len(down)
    pixel = np.arange(n * height * width).reshape(n, height, width)
    inner = (slice(None), slice(height - reach, reach, -1), slice(width - reach, reach, -1))
    rows = np.arange(height - reach, reach, -1)[:, None] + down
    columns = np.arange(width - reach, reach, -1) + right
    source = pixel.copy()
    source[inner] += down * width + right
    visited = (rows <= height - reach) & (reach < columns) & (columns <= width - reach)
    earlier = visited & ((down > 0) | ((down == 0) & (right > 0)))
    follow = pixel.copy()
    follow[inner] = np.where(earlier, source[inner], pixel[inner])
    source, follow = source.reshape(-1), follow.reshape(-1)
    while earlier.any() and not np.array_equal(further := follow[follow], follow):
        follow = further
    return source[follow].reshape(n, height, width)


@corruption(
    cifar=((6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5)),
    imagenet=((10, 3), (15, 5), (15, 8), (15, 12), (20, 15)),
)
def motion_blur(images: Array, draws: Draws, radius: float, sigma: float) -> Array:
    return motion_blurred(images, draws.uniform(-45, 45), radius, sigma)


@corruption(
    cifar=((1.06, 0.01), (1.11, 0.01), (1.16, 0.01), (1.21, 0.01), (1.26, 0.01)),
    imagenet=((1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03)),
)
def zoom_blur(images: Array, draws: Draws, stop: float, step: float) -> Array:
    # arange on floats may or may not include `stop`; which it does is part of the benchmark.
    factors = tuple(np.arange(1, stop, step).tolist())
    return truncated_sums(zoomed_mean(unit(images), factors))


@corruption(
    cifar=((0.4,), (0.6,), (0.7,), (0.8,), (1,)),
    imagenet=((1,), (2,), (3,), (4,), (6,)),
    extra=True,
)
def gaussian_blur(images: Array, draws: Draws, sigma: float) -> Array:
    return truncated(_smooth(unit(images), sigma))


def _smooth(images: Array, sigma: float) -> Array:
    """A Gaussian blur in the plane of each of `images` (N, H, W, C), edges continued outwards."""
    return ndimage.gaussian_filter(images, (0, sigma, sigma, 0), mode="nearest")


def convolved(images: Array, kernel: Array) -> Array:
    """Convolution with mirrored borders of `images` (N, H, W, C), as a product in the cosine basis.

    The `kernel` has odd sides and reads the same backwards both ways. On an axis of n pixels mirrored about the
    centres of the outermost ones, cos(pi k i / (n - 1)) for k = 0 .. n - 1 are the eigenvectors of every such kernel.
    Four small matrix products thus replace an addition for each tap of the kernel.
    """
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
