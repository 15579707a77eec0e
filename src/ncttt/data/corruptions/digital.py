"""Digital faults: contrast, saturation, elastic warps, pixelation and JPEG."""

from io import BytesIO

import numpy as np
from PIL import Image
from PIL.JpegImagePlugin import JpegImageFile
from scipy import ndimage

from ncttt.data.corruptions.colour import hsv_to_rgb, rgb_to_hsv
from ncttt.data.corruptions.pixels import (
    Array,
    bilinear,
    interleaved,
    mirrored,
    planes,
    symmetric,
    truncated,
    truncated_sums,
    unit,
)
from ncttt.data.corruptions.randomness import Draws


def contrast(images: Array, draws: Draws, factor: float) -> Array:
    """Each channel drawn towards its mean over the image."""
    height, width = images.shape[1:3]
    levels = planes(images)
    # Integer sums: exact, so that the order of summation cannot show.
    means = unit(levels.sum(axis=(2, 3), keepdims=True, dtype=np.int64) / (height * width))
    return interleaved(truncated((unit(levels) - means) * factor + means))


def saturate(images: Array, draws: Draws, factor: float, added: float) -> Array:
    hue, saturation, value = rgb_to_hsv(unit(planes(images)))
    return interleaved(truncated(hsv_to_rgb(hue, np.clip(saturation * factor + added, 0, 1), value)))


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


def jpeg_compression(images: Array, draws: Draws, quality: float) -> Array:
    return np.stack([_through_jpeg(image, int(quality)) for image in images])


def _through_jpeg(image: Array, quality: int) -> Array:
    file = BytesIO()
    Image.fromarray(image).save(file, "JPEG", quality=quality)
    file.seek(0)
    return np.asarray(JpegImageFile(file))  # Image.open would first ask which format it is
