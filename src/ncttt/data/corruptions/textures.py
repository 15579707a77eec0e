"""The pictures that frost lays over images: procedural ice, or the photographs of a folder."""

from functools import lru_cache
from pathlib import Path

import numpy as np
from PIL import Image

from ncttt.base.errors import InputError
from ncttt.data.corruptions.ice import ice_pictures
from ncttt.data.image_files import to_rgb

Array = np.ndarray
_SHRUNK = 5  # by how much the benchmark shrinks its photographs for images of 32 pixels
_FINE = 0.35  # the same for procedural ice, whose ferns are smaller than those photographs
_SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff"}


def textures_for(height: int, width: int, table: str, seed: int, folder: str | Path | None = None) -> list[Array]:
    """The frost pictures, (H', W', 3) uint8, each large enough for a crop of `height` x `width`."""
    if folder is not None:
        return photographs(str(folder), height, width, _SHRUNK if table == "cifar" else 1)
    side = max(256, 1 << (2 * max(height, width) - 1).bit_length())
    return ice_pictures(side, _FINE if table == "cifar" else 1.0, seed)


def photographs(folder: str, height: int, width: int, factor: int) -> list[Array]:
    """Every picture of `folder` in order of its name, shrunk by `factor`, less or not at all if needed to cover."""
    paths = picture_paths(folder)
    stamps = tuple((str(path), path.stat().st_mtime_ns) for path in paths)
    return _read_all(stamps, height, width, factor)


def picture_paths(folder: str | Path) -> list[Path]:
    """The pictures in `folder`, sorted by name; hidden files (macOS adds `._x.jpg` to each `x.jpg`) are no pictures."""
    if not Path(folder).is_dir():
        raise InputError(
            f"no folder of frost photographs at {str(folder)!r}; give a folder, or None for procedural ice"
        )
    shown = (path for path in Path(folder).iterdir() if not path.name.startswith("."))
    paths = sorted(path for path in shown if path.suffix.lower() in _SUFFIXES and path.is_file())
    if not paths:
        kinds = ", ".join(sorted(_SUFFIXES))
        raise InputError(f"no picture in the frost folder {str(folder)!r}; expected files ending in {kinds}")
    return paths


@lru_cache(maxsize=4)
def _read_all(stamps: tuple[tuple[str, int], ...], height: int, width: int, factor: int) -> list[Array]:
    return [covering(_read(path), height, width, factor) for path, _ in stamps]


def _read(path: str) -> Array:
    try:
        with Image.open(path) as file:
            return np.asarray(to_rgb(file))
    except Exception as error:  # a damaged file can fail anywhere inside a decoder
        raise InputError(f"cannot read the frost photograph {path!r}: {error}") from error


def covering(picture: Array, height: int, width: int, factor: int) -> Array:
    """`picture` (H', W', 3) shrunk by `factor`, or as far as it still leaves room to place a crop.

    Only every `factor`-th pixel is kept, with no averaging: bilinear reading at a fifth of the size, as OpenCV does it
    for the benchmark, falls exactly on pixels 2, 7, 12, ... A picture too small even as it is gets enlarged.
    """
    for step in range(factor, 0, -1):
        small = picture[step // 2 :: step, step // 2 :: step]
        if small.shape[0] > height and small.shape[1] > width:
            return np.ascontiguousarray(small)
    high, wide = picture.shape[:2]
    scale = max((height + 1) / high, (width + 1) / wide)
    size = max(width + 1, round(wide * scale)), max(height + 1, round(high * scale))
    return np.asarray(Image.fromarray(picture).resize(size, Image.Resampling.BILINEAR))
