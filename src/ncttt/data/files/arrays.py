"""Sets kept as `.npy` files, memory-mapped: corrupted ones, published or made by `ncttt data corrupt`, and others."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from ncttt.base.errors import InputError, nearest
from ncttt.data.files.checksums import mismatches
from ncttt.data.files.imageset import ImageSet, integers, numbered

SEVERITIES = (1, 2, 3, 4, 5)
MAKING = "corruptions.json"  # what `ncttt data corrupt` leaves beside its arrays
OK = "ok"
CIFAR_SHAPE = (32, 32, 3)


def read_made(folder: Path, corruption: str | None, severity: int | None) -> ImageSet:
    """One corruption at one severity of a folder that `ncttt data corrupt` made; classes are known by number only."""
    images, labels = read_block(folder, corruption, severity, None)
    classes = numbered(labels, str(folder / "labels.npy"))
    return ImageSet(images, labels, classes, name=f"{folder.name} {corruption} {severity}")


def read_block(
    folder: Path, corruption: str | None, severity: int | None, shape: tuple[int, ...] | None
) -> tuple[np.ndarray, np.ndarray]:
    """One corruption at one severity: its block of `<corruption>.npy` (severities * N, H, W, 3), and its labels."""
    names = sorted(path.stem for path in folder.glob("*.npy") if path.stem != "labels")
    if corruption in unfinished(folder):
        raise InputError(f"{folder}: {corruption} is unfinished; run `ncttt data corrupt` again to go on")
    if corruption not in names:
        if corruption is None:
            raise InputError(f"{folder}: corruption and severity must be given{nearest('', names)}")
        missing = folder / f"{corruption}.npy"
        raise InputError(f"{missing} is missing: no corruption {corruption!r}{nearest(corruption, names)}")
    severities = severities_of(folder)
    if severity not in severities:
        raise InputError(f"{folder}: severity must be one of {severities}, found {severity!r}")
    images, labels = read_images(folder / f"{corruption}.npy", shape), read_labels(folder / "labels.npy")
    if len(images) != len(labels) or len(images) % len(severities):
        raise InputError(
            f"{folder / corruption}.npy: {len(images)} images and {len(labels)} labels; "
            f"expected {len(severities)} equal blocks"
        )
    size = len(images) // len(severities)
    start = severities.index(severity) * size
    return images[start : start + size], _repeated(labels.reshape(-1, size), folder / "labels.npy")


def _repeated(blocks: np.ndarray, path: Path) -> np.ndarray:
    """The labels of one severity, which those of every other repeat; a block that differs is a sign of damage."""
    odd = np.argwhere(blocks != blocks[0])
    if len(odd):
        block, image = odd[0]
        raise InputError(
            f"{path}: the labels of each severity must be the same; found {blocks[block, image]} for image {image} in "
            f"block {block + 1}, {blocks[0, image]} in block 1"
        )
    return blocks[0]


def severities_of(folder: Path) -> tuple[int, ...]:
    """The severities stacked in the files of `folder`: all five, unless it was generated with fewer."""
    severities = making(folder).get("severities", SEVERITIES)
    if not isinstance(severities, list | tuple) or not severities or not set(severities) <= set(SEVERITIES):
        raise InputError(f"{folder / MAKING}: severities must be some of {SEVERITIES}, found {severities!r:.60}")
    return tuple(severities)


def hashes_of(folder: Path) -> dict[str, str]:
    """The hashes of the finished files of a generated set, as they were when it was made."""
    files = making(folder).get("files", {})
    if not isinstance(files, dict):
        raise InputError(f"{folder / MAKING}: files must be names and hashes, found {files!r:.60}")
    return {name: f"sha256:{digits}" for name, digits in files.items()}


def unfinished(folder: Path) -> list[str]:
    """The corruptions that `ncttt data corrupt` was asked for in `folder` and has not made."""
    names = making(folder).get("corruptions", [])
    if not isinstance(names, list):
        raise InputError(f"{folder / MAKING}: corruptions must be names, found {names!r:.60}")
    return [name for name in names if not (folder / f"{name}.npy").exists()]


def made_whole(folder: Path) -> bool:
    """Whether `ncttt data corrupt` has finished what it began in `folder`."""
    arrays = {path.name for path in folder.glob("*.npy")}
    return "labels.npy" in arrays and len(arrays) > 1 and not unfinished(folder)


def check_made(folder: Path) -> dict[str, str]:
    """Shapes must fit the published layout, and files be what they were when they were finished."""
    count, blocks = len(read_labels(folder / "labels.npy")), len(severities_of(folder))
    names = sorted(path.name for path in folder.glob("*.npy") if path.stem != "labels")
    missing = [f"{name}.npy" for name in unfinished(folder)]
    if not names and not missing:
        raise InputError(f"{folder} holds no corruptions; run `ncttt data corrupt` again to make them")
    begun = dict.fromkeys(missing, "unfinished; run `ncttt data corrupt` again to go on")
    shapes = {name: _check_shape(folder / name, count, blocks) for name in names}
    return {"labels.npy": OK} | shapes | mismatches(folder, hashes_of(folder)) | begun


def _check_shape(path: Path, count: int, blocks: int) -> str:
    try:
        images = read_images(path, shape=None)
    except InputError as error:
        return str(error)
    fits = len(images) == count and not count % blocks
    return OK if fits else f"{len(images)} images for {count} labels; expected {blocks} equal blocks"


def making(folder: Path) -> dict[str, Any]:
    """What `ncttt data corrupt` wrote about a set it made; nothing for a published one."""
    path = folder / MAKING
    if not path.is_file():
        return {}
    try:
        told = json.loads(path.read_text())
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} cannot be read ({error!r})") from error
    if not isinstance(told, dict):
        raise InputError(f"{path}: expected an object, found {told!r:.60}")
    return told


def read_images(path: Path, shape: tuple[int, ...] | None = CIFAR_SHAPE) -> np.ndarray:
    """A memory-mapped array uint8 (N, *shape), or (N, H, W, 3) of any size; else an error that says what was found."""
    images = read_array(path)
    fits = images.shape[1:] == shape if shape else images.ndim == 4 and images.shape[3] == 3
    if images.dtype != np.uint8 or not fits:
        expected = ", ".join(map(str, shape or ("H", "W", 3)))
        raise InputError(f"{path}: expected uint8 (N, {expected}), found {images.dtype} {images.shape}")
    return images


def read_labels(path: Path) -> np.ndarray:
    """The labels (N,) in a `.npy` file, N > 0; else an error that says what was found."""
    labels = integers(read_array(path), str(path))
    if not len(labels):
        raise InputError(f"{path} holds no labels")
    return labels


def read_array(path: Path) -> np.ndarray:
    """A memory-mapped `.npy` file; never unpickled."""
    try:
        return np.lib.format.open_memmap(path, mode="r")
    except FileNotFoundError:
        raise InputError(f"{path} is missing") from None
    except OSError:
        raise
    except Exception as error:  # a damaged header can fail in any way
        raise InputError(f"{path}: truncated, or not a plain .npy file ({error})") from error
