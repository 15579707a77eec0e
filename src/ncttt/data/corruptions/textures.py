"""The textures that frost lays over images: the photographs of a folder, or procedural ice.

Ice is grown from random numbers: ferns of crystals over a cloud of fine rime.
"""

from functools import lru_cache
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw
from scipy import ndimage

from ncttt.base.errors import InputError
from ncttt.data.files.image_files import opened, to_rgb

Array = np.ndarray
_SHRUNK = 5  # by how much the benchmark shrinks its photographs for images of 32 pixels
_FINE = 0.35  # the same for procedural ice, whose ferns are smaller than those photographs
_SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff"}
COUNT = 5  # the benchmark draws from five photographs
_FINER = 2  # ice is drawn at twice the size and shrunk: smooth lines
_SIDEWAYS = np.deg2rad(58)  # the sixfold symmetry of ice, a little bent


def textures_for(height: int, width: int, table: str, seed: int, folder: str | Path | None = None) -> list[Array]:
    """The frost textures, (H', W', 3) uint8, each large enough for a crop of `height` x `width`."""
    if folder is not None:
        return photographs(str(folder), height, width, _SHRUNK if table == "cifar" else 1)
    side = max(256, 1 << (2 * max(height, width) - 1).bit_length())
    return ice_textures(side, _FINE if table == "cifar" else 1.0, seed)


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
        with opened(Path(path)) as file:
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


@lru_cache(maxsize=4)
def ice_textures(side: int, scale: float, seed: int) -> list[Array]:
    """`COUNT` different textures of frost, each `(side, side, 3)` uint8; `scale` 1 is for images of 224 pixels."""
    return [ice(side, scale, np.random.default_rng([seed, number])) for number in range(COUNT)]


def ice(side: int, scale: float, rng: np.random.Generator) -> Array:
    """One picture of frost, `(side, side, 3)` uint8."""
    ferns = drawn(grown(side, 150 * scale, rng), side)
    glow = ndimage.gaussian_filter(ferns, 2.5 * scale) + ndimage.gaussian_filter(ferns, 9 * scale)
    rime = octaves(side, 2.5 * scale + 0.6, 2, rng)
    cover = octaves(side, 130 * scale, 4, rng)
    thickness = 1.1 * ferns + 0.5 * glow + 0.12 * rime * (0.4 + glow) + 0.16 * cover
    thickness = (thickness - thickness.mean()) / thickness.std()
    return tinted(1 / (1 + np.exp(-0.2 - 1.3 * thickness)))


def grown(side: int, length: float, rng: np.random.Generator) -> list[tuple[Array, float]]:
    """Stems of ferns, then their branches, then the barbs of these: polylines (stems, points, 2) with a brightness."""
    count = max(6, int(14 * (side / length) ** 2))
    # Ice grows in fields of similar direction: each stem takes that of a slow random field, and some disagree.
    starts = rng.uniform(-0.2, 1.2, (count, 2)) * side
    leaning = 1.3 * np.sin(starts @ rng.normal(0, 1.2 / side, (2, 1)) * 2 * np.pi)[:, 0] + rng.uniform(0, 2 * np.pi)
    angles = leaning + rng.normal(0, 0.55, count)
    lengths = length * rng.lognormal(-0.35, 0.55, count).clip(0.2, 2)
    # Small ferns have fewer shoots: closer than a pixel or two they would merge.
    dense = min(1.0, length / 90)
    stems = polylines(starts, angles, lengths, rng.normal(0, 0.5, count), points=round(26 * dense))
    branches = side_shoots(stems, lengths, 0.42, points=round(10 * dense), rng=rng)
    barbs = side_shoots(branches[0], branches[1], 0.38, points=3, rng=rng)
    return [(barbs[0], 0.3), (branches[0], 0.6), (stems, 1.0)]


def polylines(starts: Array, angles: Array, lengths: Array, bends: Array, points: int) -> Array:
    """Lines of `points` points that begin at `starts` (K, 2) and turn by `bends` (K,) radians on their way."""
    along = np.linspace(0, 1, points)
    headings = angles[:, None] + bends[:, None] * along
    steps = np.stack([np.sin(headings), np.cos(headings)], axis=-1) * (lengths / (points - 1))[:, None, None]
    steps[:, 0] = 0
    return starts[:, None] + np.cumsum(steps, axis=1)


def side_shoots(
    stems: Array, lengths: Array, share: float, points: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Shoots to both sides from each inner point of `stems` (K, P, 2), shorter towards the tip; and their lengths."""
    inner = stems[:, 1:-1]
    forward = stems[:, 2:] - inner
    headings = np.arctan2(forward[..., 0], forward[..., 1])[..., None] + np.array([-_SIDEWAYS, _SIDEWAYS])
    towards_tip = np.linspace(1, 0.15, inner.shape[1])[:, None]
    grown_to = lengths[:, None, None] * share * towards_tip * rng.uniform(0.45, 1.1, headings.shape)
    starts = np.repeat(inner[:, :, None], 2, axis=2).reshape(-1, 2)
    bends = np.tile([0.35, -0.35], headings.size // 2)
    return polylines(starts, headings.ravel(), grown_to.ravel(), bends, points), grown_to.ravel()


def drawn(layers: list[tuple[Array, float]], side: int) -> Array:
    """The lines as a picture `(side, side)` in [0, 1]."""
    canvas = Image.new("L", (side * _FINER, side * _FINER))
    pen = ImageDraw.Draw(canvas)
    for lines, brightness in layers:
        flat = (lines[..., ::-1] * _FINER).reshape(len(lines), -1)
        for line in flat.tolist():
            pen.line(line, fill=round(255 * brightness), width=2 if brightness == 1 else 1)
    return np.asarray(canvas.reduce(_FINER)) / 255


def octaves(side: int, scale: float, count: int, rng: np.random.Generator) -> Array:
    """Smooth noise, mean 0, variance 1: details of `scale` pixels, half as strong ones of half the size, and so on."""
    total = np.zeros((side, side))
    for octave in range(count):
        sigma = scale / 2 ** (octave + 1.5)
        layer = ndimage.gaussian_filter(rng.standard_normal((side, side)), sigma, mode="wrap", truncate=3)
        total += layer / layer.std() / 2**octave
    return (total - total.mean()) / total.std()


def tinted(thickness: Array) -> Array:
    """Thickness in [0, 1] as the colours of ice: blue-grey glass where thin, bluish white where thick."""
    thin, thick = np.array([34.0, 54.0, 82.0]), np.array([238.0, 247.0, 255.0])
    return (thin + thickness[..., None] * (thick - thin)).astype(np.uint8)
