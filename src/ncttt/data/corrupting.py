"""A set by its name, corrupted into a folder or drawn on a contact sheet."""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from ncttt.base.errors import InputError
from ncttt.base.files import name_the_file
from ncttt.base.locks import alone_with
from ncttt.base.progress import ProgressDisplay
from ncttt.data.corruptions import metadata
from ncttt.data.corruptions.contact_sheet import contact_sheet
from ncttt.data.corruptions.generation import Progress, check_request, generate
from ncttt.data.corruptions.registry import SEVERITIES, expand_corruptions, table_for
from ncttt.data.corruptions.textures import textures_for
from ncttt.data.files.folders import IMAGE_SIZE
from ncttt.data.files.imageset import Images, ImageSet
from ncttt.data.files.prefetch import prefetch
from ncttt.data.files.resizing import SQUARE
from ncttt.data.loading import load

# One name for every run: what a killed one left is replaced by the next. No .npy, so never taken for a corruption.
DECODED = ".decoded-images"
CHUNK = 64
SHOWN = 5  # images that take turns on a contact sheet


def corrupt_set(
    name: str,
    out: str | Path,
    *,
    corruptions: str | Sequence[str] = "all,extra",
    severities: str | Sequence[int] = SEVERITIES,
    split: str = "test",
    seed: int = 0,
    workers: int | None = None,
    constants: str | None = None,
    frost: str | Path | None = None,
    root: str | Path | None = None,
    image_size: int = IMAGE_SIZE,
    resize: str = SQUARE,
    skip_bad: bool = False,
    progress: Progress | None = None,
) -> Path:
    """Corrupt a data set, or a folder of images, into the layout of CIFAR-C in the folder `out`; see `generate`.

    Image files are decoded once. What can be refused is refused before that.
    """
    names = expand_corruptions(corruptions, clean=False)
    data = load(name, split, root, image_size=image_size, resize=resize)
    severities = parse_severities(severities) if isinstance(severities, str) else severities
    _check_before_decoding(data, Path(out), names, severities, seed, workers, constants, frost, skip_bad)
    if skip_bad:
        data = load(name, split, root, image_size=image_size, resize=resize, skip_bad=True)
    Path(out).parent.mkdir(parents=True, exist_ok=True)
    with alone_with(Path(out)), decoded(data.images, Path(out)) as images:
        return generate(
            images,
            data.labels_for("a corrupted set"),
            out,
            corruptions=names,
            severities=severities,
            seed=seed,
            workers=workers,
            constants=constants,
            frost=frost,
            progress=progress,
        )


def draw_sheet(
    name: str,
    out: str | Path,
    *,
    corruptions: str | Sequence[str] = "all",
    split: str = "test",
    first: int = 0,
    seed: int = 0,
    constants: str | None = None,
    frost: str | Path | None = None,
    root: str | Path | None = None,
    image_size: int = IMAGE_SIZE,
    resize: str = SQUARE,
) -> Path:
    """Draw a contact sheet of a set, or of a folder of images: a row a corruption, a column a severity."""
    out, names = Path(out), expand_corruptions(corruptions, clean=False)
    if out.suffix.lower() not in (".png", ".jpg", ".jpeg", ".webp"):
        raise InputError(f"a contact sheet is written as .png, .jpg or .webp; found {str(out)!r}")
    data = load(name, split, root, image_size=image_size, resize=resize)
    if not 0 <= first < len(data):
        raise InputError(f"{name} {split} has {len(data)} images; there is no image {first}")
    images = data.images[np.arange(first, min(first + SHOWN, len(data)))]
    contact_sheet(images, out, corruptions=names, seed=seed, constants=constants, frost=frost)
    return out


@contextmanager
def decoded(images: Images, out: Path) -> Iterator[np.ndarray]:
    """`images` as one uint8 array (N, H, W, 3); lazy ones are decoded in threads, into a file in `out` for as long."""
    if isinstance(images, np.ndarray):
        yield images
        return
    out.mkdir(parents=True, exist_ok=True)
    path = out / DECODED
    path.unlink(missing_ok=True)
    try:
        with name_the_file(path):
            _decode_all(images, path)
        # A memory map, because a folder of image files may be larger than the memory.
        yield np.load(path, mmap_mode="r")
    finally:
        path.unlink(missing_ok=True)


def _decode_all(images: Images, path: Path) -> None:
    # Written rather than filled as a memory map: a full disk is then an error, not a SIGBUS.
    chunks = [np.arange(start, min(start + CHUNK, len(images))) for start in range(0, len(images), CHUNK)]
    with path.open("wb") as file, ProgressDisplay("decoded", len(images), lines=False) as display:
        header = {"descr": "|u1", "fortran_order": False, "shape": images.shape}
        np.lib.format.write_array_header_1_0(file, header)
        for block in prefetch(images.__getitem__, chunks, os.cpu_count() or 1):
            file.write(np.ascontiguousarray(block).data)
            display.advance(len(block))


def _check_before_decoding(
    data: ImageSet,
    out: Path,
    corruptions: Sequence[str],
    severities: Sequence[int],
    seed: int,
    workers: int | None,
    constants: str | None,
    frost: str | Path | None,
    skip_bad: bool,
) -> None:
    """Refuse at once what `generate` would refuse after hours of decoding."""
    shape = data.images.shape
    nothing = np.empty((0, *shape[1:]), np.uint8)
    check_request(nothing, corruptions, severities, seed, workers)
    table = table_for(shape[1], shape[2], constants)
    if frost is not None:
        textures_for(shape[1], shape[2], table, seed, frost)
    asked = metadata.describe(nothing, data.labels_for("a corrupted set"), corruptions, severities, seed, table, frost)
    asked |= {"images": list(shape)}
    unknown = {"images_sha256"} | ({"images", "labels_sha256"} if skip_bad else set())
    known = {name: value for name, value in asked.items() if name not in unknown}
    metadata.refuse_other_making(out, known, corruptions)


def parse_severities(text: str) -> tuple[int, ...]:
    """Severities from `5`, `1-5` or `1,3,5`.

    >>> parse_severities("1-3,5")
    (1, 2, 3, 5)
    """
    severities: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"\s*([1-5])(?:-([1-5]))?\s*", part)
        first, last = (match[1], match[2] or match[1]) if match else ("", "")
        if not match or first > last:
            raise InputError(f"severities go from 1 to 5 and look like 5, 1-5 or 1,3,5; found {text!r}")
        severities.update(range(int(first), int(last) + 1))
    return tuple(sorted(severities))
