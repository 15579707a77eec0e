"""The pictures that frost lays over images: procedural ice, or the photographs of a folder."""

from functools import lru_cache
from pathlib import Path

import numpy as np
from PIL import Image, UnidentifiedImageError

from ncttt.data.corruptions.ice import ice_pictures
from ncttt.errors import InputError

Array = np.ndarray
_SHRUNK = 0.2  # what the benchmark does to its photographs for images of 32 pixels
_FINE = 0.35  # the same for procedural ice, whose ferns are smaller than those photographs
_SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff"}


def textures_for(height: int, width: int, table: str, seed: int, folder: str | Path | None = None) -> list[Array]:
    """The frost pictures, (H', W', 3) uint8, each large enough for a crop of `height` x `width`."""
    if folder is not None:
        return photographs(str(folder), height, width, _SHRUNK if table == "cifar" else 1.0)
    side = max(256, 1 << (2 * max(height, width) - 1).bit_length())
    return ice_pictures(side, _FINE if table == "cifar" else 1.0, seed)


def photographs(folder: str, height: int, width: int, scale: float) -> list[Array]:
    """Every picture of `folder` in order of its name, shrunk by `scale`, or enlarged if it would not cover an image."""
    paths = picture_paths(folder)
    stamps = tuple((str(path), path.stat().st_mtime_ns) for path in paths)
    return _read_all(stamps, height, width, scale)


def picture_paths(folder: str | Path) -> list[Path]:
    """The pictures in `folder`, sorted by name."""
    if not Path(folder).is_dir():
        raise InputError(
            f"no folder of frost photographs at {str(folder)!r}; give a folder, or None for procedural ice"
        )
    paths = sorted(path for path in Path(folder).iterdir() if path.suffix.lower() in _SUFFIXES)
    if not paths:
        kinds = ", ".join(sorted(_SUFFIXES))
        raise InputError(f"no picture in the frost folder {str(folder)!r}; expected files ending in {kinds}")
    return paths


@lru_cache(maxsize=4)
def _read_all(stamps: tuple[tuple[str, int], ...], height: int, width: int, scale: float) -> list[Array]:
    return [_read(path, height, width, scale) for path, _ in stamps]


def _read(path: str, height: int, width: int, scale: float) -> Array:
    try:
        with Image.open(path) as file:
            picture = file.convert("RGB")
    except (UnidentifiedImageError, OSError) as error:
        raise InputError(f"cannot read the frost photograph {path!r}: {error}") from error
    scale = max(scale, (height + 1) / picture.height, (width + 1) / picture.width)
    size = max(width + 1, round(picture.width * scale)), max(height + 1, round(picture.height * scale))
    return np.asarray(picture.resize(size, Image.Resampling.BILINEAR))
