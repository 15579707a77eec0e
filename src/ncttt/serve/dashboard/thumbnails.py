"""Thumbnails: small copies of images that were predicted, and their files."""

from __future__ import annotations

import base64
import io

import numpy as np

SIDE = 64  # pixels, at most


def thumbnail(image: np.ndarray) -> np.ndarray:
    """A copy of an image, uint8 (H, W, 3), with sides of at most 64 pixels; blocks of pixels become their means.

    >>> thumbnail(np.zeros((224, 200, 3), np.uint8)).shape, thumbnail(np.zeros((32, 32, 3), np.uint8)).shape
    ((56, 50, 3), (32, 32, 3))
    """
    block = -(-max(image.shape[:2]) // SIDE)
    if block == 1:
        return image.copy()
    height, width = (side // block for side in image.shape[:2])
    blocks = image[: height * block, : width * block].reshape(height, block, width, block, 3)
    return blocks.mean(axis=(1, 3), dtype=np.float32).astype(np.uint8)


def as_png(image: np.ndarray) -> str:
    """An image as a PNG file in base64."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue()).decode()
