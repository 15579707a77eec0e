"""Image files on their way to `ncttt data corrupt`: what is cheap is checked first, then all are decoded to disk."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from ncttt.data.ahead import read_ahead
from ncttt.data.corruptions import metadata
from ncttt.data.corruptions.constants import table_for
from ncttt.data.corruptions.textures import textures_for
from ncttt.data.corruptions.workers import check_workers
from ncttt.data.imageset import Images, ImageSet
from ncttt.data.lazy import check_request
from ncttt.data.writing import name_the_file

# One name for every run: what a killed one left is replaced by the next. No .npy, so never taken for a corruption.
NAME = ".decoded-images"
CHUNK = 64


@contextmanager
def decoded(images: Images, out: Path) -> Iterator[np.ndarray]:
    """`images` as one uint8 array (N, H, W, 3); lazy ones are decoded in threads, into a file in `out` for as long."""
    if isinstance(images, np.ndarray):
        yield images
        return
    out.mkdir(parents=True, exist_ok=True)
    path = out / NAME
    path.unlink(missing_ok=True)
    try:
        with name_the_file(path):
            _write(images, path)
        # A memory map, because a folder of image files may be larger than the memory.
        yield np.load(path, mmap_mode="r")
    finally:
        path.unlink(missing_ok=True)


def _write(images: Images, path: Path) -> None:
    # Written rather than filled as a memory map: a full disk is then an error, not a SIGBUS.
    chunks = [np.arange(start, min(start + CHUNK, len(images))) for start in range(0, len(images), CHUNK)]
    with path.open("wb") as file:
        header = {"descr": "|u1", "fortran_order": False, "shape": images.shape}
        np.lib.format.write_array_header_1_0(file, header)
        for block in read_ahead(images.__getitem__, chunks, os.cpu_count() or 1):
            file.write(np.ascontiguousarray(block).data)


def check_before_decoding(
    data: ImageSet,
    out: Path,
    *,
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
    for corruption in corruptions:
        check_request(shape, corruption, severities[0], seed)
    check_workers(workers)
    table = table_for(shape[1], shape[2], constants)
    if frost is not None:
        textures_for(shape[1], shape[2], table, seed, frost)
    nothing = np.empty((0, *shape[1:]), np.uint8)
    asked = metadata.describe(nothing, data.labels, severities, seed, table, frost) | {"images": list(shape)}
    unknown = {"images_sha256"} | ({"images", "labels_sha256"} if skip_bad else set())
    known = {name: value for name, value in asked.items() if name not in unknown}
    outputs = [out / f"{name}.npy" for name in (*corruptions, "labels")]
    metadata.refuse_other_making(out, known, outputs)
