"""Sets kept as `.npy` files, memory-mapped: CIFAR-10-C, CIFAR-100-C and CIFAR-10.1."""

import json
from pathlib import Path

import numpy as np

from ncttt.data.imageset import ImageSet
from ncttt.data.sources import MAKING
from ncttt.errors import InputError, nearest

SEVERITIES = (1, 2, 3, 4, 5)
CIFAR_SHAPE = (32, 32, 3)


def cifar_c(folder: Path, classes: tuple[str, ...], corruption: str | None, severity: int | None) -> ImageSet:
    """One corruption at one severity of CIFAR-C: its block of `<corruption>.npy` (5N, 32, 32, 3), memory-mapped."""
    images, labels = _block(folder, corruption, severity, CIFAR_SHAPE)
    return ImageSet(images, labels, classes, name=f"{folder.name} {corruption} {severity}")


def generated(folder: Path, corruption: str, severity: int) -> ImageSet:
    """The same of a folder that `ncttt data corrupt` has made of any set; classes are known by number only."""
    images, labels = _block(folder, corruption, severity, None)
    classes = tuple(map(str, range(int(labels.max()) + 1)))
    return ImageSet(images, labels, classes, name=f"{folder.name} {corruption} {severity}")


def _block(
    folder: Path, corruption: str | None, severity: int | None, shape: tuple[int, ...] | None
) -> tuple[np.ndarray, np.ndarray]:
    names = sorted(path.stem for path in folder.glob("*.npy") if path.stem != "labels")
    if corruption not in names:
        raise InputError(f"{folder}: no corruption {corruption!r}{nearest(str(corruption), names)}")
    severities = severities_of(folder)
    if severity not in severities:
        raise InputError(f"{folder}: severity must be one of {severities}, found {severity!r}")
    images, labels = read_images(folder / f"{corruption}.npy", shape), read_array(folder / "labels.npy")
    if len(images) != len(labels) or len(images) % len(severities):
        raise InputError(
            f"{folder / corruption}.npy: {len(images)} images and {len(labels)} labels; "
            f"expected {len(severities)} equal blocks"
        )
    size = len(images) // len(severities)
    start = severities.index(severity) * size
    return images[start : start + size], labels[start : start + size]


def severities_of(folder: Path) -> tuple[int, ...]:
    """The severities stacked in the files of `folder`: all five, unless it was generated with fewer."""
    if not (folder / MAKING).is_file():
        return SEVERITIES
    try:
        return tuple(map(int, json.loads((folder / MAKING).read_text())["severities"]))
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{folder / MAKING} cannot be read ({error!r})") from error


def cifar10_1(folder: Path, version: str, classes: tuple[str, ...]) -> ImageSet:
    """CIFAR-10.1 in its version "v4" (2,021 images) or "v6" (2,000)."""
    images = read_images(folder / f"cifar10.1_{version}_data.npy")
    labels = read_array(folder / f"cifar10.1_{version}_labels.npy")
    return ImageSet(images, labels, classes, name=f"cifar10.1 {version}")


def read_images(path: Path, shape: tuple[int, ...] | None = CIFAR_SHAPE) -> np.ndarray:
    """A memory-mapped array uint8 (N, *shape), or (N, H, W, 3) of any size; else an error that says what was found."""
    found = read_array(path)
    fits = found.shape[1:] == shape if shape else found.ndim == 4 and found.shape[3] == 3
    if found.dtype != np.uint8 or not fits:
        expected = ", ".join(map(str, shape or ("H", "W", 3)))
        raise InputError(f"{path}: expected uint8 (N, {expected}), found {found.dtype} {found.shape}")
    return found


def read_array(path: Path) -> np.ndarray:
    """A memory-mapped `.npy` file; never unpickled."""
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise InputError(f"{path} is missing") from None
    except (ValueError, EOFError) as error:
        raise InputError(f"{path}: truncated, or not a plain .npy file ({error})") from error
