"""Image files as uint8 arrays of one size, whatever their mode: grey, palette, alpha, 16 bit."""

from pathlib import Path

import numpy as np
from PIL import Image

from ncttt.errors import InputError

EXTENSIONS = frozenset([".jpg", ".jpeg", ".png", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm"])


def decode(path: Path, size: int) -> np.ndarray:
    """The image in `path`, its shorter side scaled to `size` and the centre cut out: uint8 (size, size, 3)."""
    try:
        with Image.open(path) as image:
            return np.asarray(fit(to_rgb(image), size))
    except FileNotFoundError:
        raise InputError(f"{path} is missing") from None
    except Exception as error:  # a damaged file can fail anywhere inside a decoder
        raise InputError(f"{path}: cannot be read as an image ({error})") from error


def to_rgb(image: Image.Image) -> Image.Image:
    """Any mode as 8-bit RGB; alpha is dropped, as the usual loaders do, and 16 bit scaled to 8.

    >>> to_rgb(Image.new("I;16", (1, 1), 65535)).getpixel((0, 0))
    (255, 255, 255)
    """
    if image.mode.startswith("I") or image.mode == "F":
        grey = np.asarray(image, dtype=np.float64)
        # Pillow reads 16-bit files as "I;16" or, in some formats, as "I"; both go up to 65535.
        scaled = grey / 257 if image.mode.startswith("I") else grey
        image = Image.fromarray(np.clip(np.round(scaled), 0, 255).astype(np.uint8))
    if image.mode == "P":
        image = image.convert("RGBA")
    return image.convert("RGB")


def fit(image: Image.Image, size: int) -> Image.Image:
    """Scale the shorter side to `size` (bilinear, antialiased), then crop the centre.

    >>> fit(Image.new("RGB", (40, 20)), 10).size
    (10, 10)
    """
    width, height = image.size
    scale = size / min(width, height)
    wide, high = max(size, round(width * scale)), max(size, round(height * scale))
    if (wide, high) != image.size:
        image = image.resize((wide, high), Image.Resampling.BILINEAR)
    left, top = (wide - size) // 2, (high - size) // 2
    return image.crop((left, top, left + size, top + size))
