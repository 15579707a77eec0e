"""Digital faults: contrast, saturation, elastic warps, pixelation and JPEG."""

from io import BytesIO

import numpy as np
from PIL import Image
from PIL.JpegImagePlugin import JpegImageFile
from scipy import ndimage

from ncttt.data.corruptions.pixels import (
    Array,
    bilinear,
    hsv_to_rgb,
    interleaved,
    mirrored,
    planes,
    rgb_to_hsv,
    symmetric,
    truncated,
    truncated_sums,
    unit,
)
from ncttt.data.corruptions.randomness import Draws
from ncttt.data.corruptions.registry import corruption


@corruption(
    cifar=((0.75,), (0.5,), (0.4,), (0.3,), (0.15,)),
    imagenet=((0.4,), (0.3,), (0.2,), (0.1,), (0.05,)),
)
def contrast(images: Array, draws: Draws, factor: float) -> Array:
    """Each channel drawn towards its mean over the image."""
    height, width = images.shape[1:3]
    levels = planes(images)
    # Integer sums: exact, so that the order of summation cannot show.
    means = unit(levels.sum(axis=(2, 3), keepdims=True, dtype=np.int64) / (height * width))
    return interleaved(truncated((unit(levels) - means) * factor + means))


@corruption(
    cifar=(
        (32 * 0, 32 * 0, 32 * 0.08),
        (32 * 0.05, 32 * 0.2, 32 * 0.07),
        (32 * 0.08, 32 * 0.06, 32 * 0.06),
        (32 * 0.1, 32 * 0.04, 32 * 0.05),
        (32 * 0.1, 32 * 0.03, 32 * 0.03),
    ),
    # 244 for 224 is the benchmark's own slip, and so part of its definition.
    imagenet=(
        (244 * 2, 244 * 0.7, 244 * 0.1),
        (244 * 2, 244 * 0.08, 244 * 0.2),
        (244 * 0.05, 244 * 0.01, 244 * 0.02),
        (244 * 0.07, 244 * 0.01, 244 * 0.02),
        (244 * 0.12, 244 * 0.01, 244 * 0.02),
    ),
)
def elastic_transform(images: Array, draws: Draws, alpha: float, sigma: float, affine: float) -> Array:
    """A random affine map (three points moved by up to `affine` pixels), then a smooth random displacement field."""
    _, height, width, _ = images.shape
    moved = draws.uniform(-affine, affine, (3, 2))
    warped = bilinear(unit(planes(images)), *affine_positions(moved, height, width), border=mirrored)
    right, down = (_smooth_field(draws.uniform(-1, 1, (height, width)), sigma) * alpha for _ in range(2))
    rows, columns = np.arange(height)[:, None], np.arange(width)
    shifted = bilinear(warped, rows + down, columns + right, border=symmetric)
    return interleaved(truncated_sums(shifted))


def affine_positions(moved: Array, height: int, width: int) -> tuple[Array, Array]:
    """Where each pixel is read from, rows and columns (N, H, W), if three points move by `moved` (N, 3, 2).

    The points are (x, y) corners of a square about the centre that reaches a third of the image to each side.
    """
    centre, third = np.array([width // 2, height // 2]), min(height, width) // 3
    points = centre + third * np.array([[1, 1], [1, -1], [-1, -1]])
    ends = np.concatenate([points + moved, np.ones((len(moved), 3, 1))], axis=2)
    back = np.linalg.solve(ends, np.broadcast_to(points.astype(float), moved.shape))[..., None, None]
    x, y = np.arange(width), np.arange(height)[:, None]
    columns, rows = (back[:, 0, axis] * x + back[:, 1, axis] * y + back[:, 2, axis] for axis in (0, 1))
    return rows, columns


def _smooth_field(field: Array, sigma: float) -> Array:
    return ndimage.gaussian_filter(field, (0, sigma, sigma), mode="reflect", truncate=3)


@corruption(
    cifar=((0.95,), (0.9,), (0.85,), (0.75,), (0.65,)),
    imagenet=((0.6,), (0.5,), (0.4,), (0.3,), (0.25,)),
)
def pixelate(images: Array, draws: Draws, scale: float) -> Array:
    _, height, width, _ = images.shape
    small = _boxed(_boxed(images, int(width * scale)).swapaxes(1, 2), int(height * scale))
    return _boxed(_boxed(small.swapaxes(1, 2), width).swapaxes(1, 2), height).swapaxes(1, 2)


def _boxed(images: Array, width: int) -> Array:
    """`images` (N, H, W, 3) brought to `width` by Pillow's box filter, the whole batch as one tall picture.

    Pillow resizes rows first and rounds, then columns, so two calls a direction apart give exactly its own result.
    """
    n, height, _, channels = images.shape
    tall = np.ascontiguousarray(images).reshape(n * height, -1, channels)
    resized = Image.fromarray(tall).resize((width, n * height), Image.Resampling.BOX)
    return np.asarray(resized).reshape(n, height, width, channels)


@corruption(
    cifar=((80,), (65,), (58,), (50,), (40,)),
    imagenet=((25,), (18,), (15,), (10,), (7,)),
)
def jpeg_compression(images: Array, draws: Draws, quality: float) -> Array:
    return np.stack([_through_jpeg(image, int(quality)) for image in images])


def _through_jpeg(image: Array, quality: int) -> Array:
    file = BytesIO()
    Image.fromarray(image).save(file, "JPEG", quality=quality)
    file.seek(0)
    return np.asarray(JpegImageFile(file))  # Image.open would first ask which format it is


@corruption(
    cifar=((0.3, 0), (0.1, 0), (1.5, 0), (2, 0.1), (2.5, 0.2)),
    imagenet=((0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (20, 0.2)),
    extra=True,
)
def saturate(images: Array, draws: Draws, factor: float, added: float) -> Array:
    hue, saturation, value = rgb_to_hsv(unit(planes(images)))
    return interleaved(truncated(hsv_to_rgb(hue, np.clip(saturation * factor + added, 0, 1), value)))
