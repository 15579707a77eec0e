"""Image files decoded to uint8 arrays of one size, whatever their mode.

Which decoder reads a file is decided here, not by its content: a file that claims another format is refused, and so is
one of more pixels than the limit, before any of them is decoded.
"""

import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import ExifTags, Image

from ncttt.base.errors import InputError
from ncttt.data.files.resizing import SQUARE, check_image_size, kept_part, shorter_side

FORMATS = ("JPEG", "PNG", "BMP", "GIF", "TIFF", "WEBP", "PPM")
MOST_PIXELS = 89_000_000  # below that at which Pillow begins to warn; 267 MB as RGB
DECODING = 1  # to be raised when the same file is decoded to other pixels: rows know image files by their contents
# How to turn a picture upright that a camera has stored turned, by the orientation it noted.
UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


def decode(path: Path, size: int, resize: str = SQUARE) -> np.ndarray:
    """The image in `path` upright, brought to its size as `resize` says: uint8 (size, size, 3)."""
    with _naming(path):
        return _pixels(path, size, resize)


def decode_hashed(path: Path, size: int, resize: str = SQUARE) -> tuple[np.ndarray, bytes]:
    """The same, with the SHA-256 of the very bytes that were decoded."""
    with _naming(path):
        content = _content(path)
        return _pixels(BytesIO(content), size, resize), hashlib.sha256(content).digest()


def decode_bytes(
    content: bytes, name: str, size: int, resize: str = SQUARE, most_pixels: int = MOST_PIXELS
) -> np.ndarray:
    """The same from the bytes of an image file, which errors call by that name."""
    with _naming(name):
        return _pixels(BytesIO(content), size, resize, most_pixels)


def hash_of(path: Path) -> bytes:
    """The SHA-256 of a file."""
    with _naming(path):
        return hashlib.sha256(_content(path)).digest()


def _content(path: Path) -> bytes:
    if not stat.S_ISREG(path.stat().st_mode):
        raise InputError("it is no regular file")  # a pipe would keep us waiting
    return path.read_bytes()


@contextmanager
def _naming(path: Path | str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise InputError(f"{path} is missing") from None
    except Exception as error:  # a damaged file can fail anywhere inside a decoder
        raise InputError(f"{path}: cannot be read as an image ({error})") from error


@contextmanager
def opened(file: Path | BytesIO, most_pixels: int = MOST_PIXELS) -> Iterator[Image.Image]:
    """An image of a format and a size that we decode; nothing of it is decoded yet."""
    if isinstance(file, Path) and not stat.S_ISREG(file.stat().st_mode):
        raise InputError("it is no regular file")  # a pipe would keep us waiting
    # Pillow's own limit is a warning that depends on a global; ours is checked right after the header is read.
    with Image.open(file, formats=FORMATS) as image:
        if image.width * image.height > most_pixels:
            raise InputError(f"{image.width} x {image.height} pixels; at most {most_pixels:,} are decoded")
        yield image


def _pixels(file: Path | BytesIO, size: int, resize: str, most_pixels: int = MOST_PIXELS) -> np.ndarray:
    with opened(file, most_pixels) as image:
        turn = UPRIGHT.get(_orientation(image))
        stored = to_rgb(image)
    return np.asarray(fit(stored if turn is None else stored.transpose(turn), size, resize))


def _orientation(image: Image.Image) -> int:
    # Pillow turns TIFF files itself when it reads their pixels.
    try:
        return 1 if image.format == "TIFF" else image.getexif().get(ExifTags.Base.Orientation, 1)
    except Exception:  # damaged notes of a camera do not spoil its picture
        return 1


def to_rgb(image: Image.Image) -> Image.Image:
    """Any mode as 8-bit RGB; alpha is dropped, as the usual loaders do, 16 bit and floats are scaled to 8.

    >>> to_rgb(Image.new("I;16", (1, 1), 65535)).getpixel((0, 0))
    (255, 255, 255)
    """
    if image.mode.startswith("I") or image.mode == "F":
        image = Image.fromarray(_eight_bit(np.asarray(image)) if image.mode.startswith("I") else _floats(image))
    if image.mode == "P":
        image = image.convert("RGBA")
    return image.convert("RGB")


def _eight_bit(grey: np.ndarray) -> np.ndarray:
    """Pillow reads 16-bit files as "I;16" or, in some formats, as "I"; both go up to 65535, and 255 * 257 is that."""
    whole = np.clip(grey, 0, 65535).astype(np.int32)
    whole += 128  # rounds to the nearest: no whole number is halfway between two multiples of 257
    whole //= 257
    return whole.astype(np.uint8)


def _floats(image: Image.Image) -> np.ndarray:
    grey = np.asarray(image, dtype=np.float64)
    low, high = grey.min(), grey.max()
    if not 0 <= low <= high <= 255:
        raise InputError(f"float values from {low} to {high}; expected 0 to 1 or 0 to 255")
    return np.round(grey * 255 if high <= 1 else grey).astype(np.uint8)


def fit(image: Image.Image, size: int, resize: str = SQUARE) -> Image.Image:
    """The image as a square of `size` pixels (bilinear, antialiased).

    >>> fit(Image.new("RGB", (40, 20)), 10, "crop").size
    (10, 10)
    """
    # Only the part that is kept is scaled: a strip of 2 x 4000 pixels would become one of 224 x 448000 first.
    return image.resize((size, size), Image.Resampling.BILINEAR, kept_part(*image.size, size, resize))


class LazyImages:
    """Image files that look like one uint8 array (N, size, size, 3) and are decoded when they are indexed."""

    dtype = np.dtype(np.uint8)

    def __init__(self, paths: Sequence[Path | str], size: int, resize: str = SQUARE) -> None:
        check_image_size(size)
        shorter_side(resize, size)  # an unknown way is refused here, before anything is decoded
        self.paths, self.size, self.resize = list(paths), size, resize

    @property
    def shape(self) -> tuple[int, int, int, int]:
        return len(self.paths), self.size, self.size, 3

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, indices: np.ndarray | slice | int) -> np.ndarray:
        chosen = np.arange(len(self))[indices]
        if chosen.ndim == 0:
            return self._decoded(int(chosen))
        images = np.empty((len(chosen), self.size, self.size, 3), np.uint8)
        for row, index in enumerate(chosen):
            images[row] = self._decoded(index)
        return images

    def _decoded(self, index: int) -> np.ndarray:
        return decode(Path(self.paths[index]), self.size, self.resize)

    def __array__(self, dtype: object = None, copy: bool | None = None) -> np.ndarray:
        return self[:]

    def select(self, indices: np.ndarray) -> "LazyImages":
        """The files at `indices`, still undecoded."""
        return LazyImages([self.paths[i] for i in indices], self.size, self.resize)

    def unreadable(self, workers: int | None = None) -> dict[int, str]:
        """Decode every file once, in threads; the index and the error of those that fail."""
        with ThreadPoolExecutor(workers or os.cpu_count()) as pool:
            errors = pool.map(self._error, range(len(self)))
            return {index: error for index, error in enumerate(errors) if error}

    def _error(self, index: int) -> str | None:
        try:
            self._decoded(index)
        except InputError as error:
            return str(error)
        return None
