"""Sets kept as `.npy` files, memory-mapped: CIFAR-10-C, CIFAR-100-C and CIFAR-10.1."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from ncttt.base.errors import InputError, nearest
from ncttt.data.imageset import ImageSet, integers, numbered
from ncttt.data.sources import MAKING, UNFINISHED, unfinished

SEVERITIES = (1, 2, 3, 4, 5)
CIFAR_SHAPE = (32, 32, 3)


def cifar_c(folder: Path, classes: tuple[str, ...], corruption: str | None, severity: int | None) -> ImageSet:
    """One corruption at one severity of CIFAR-C: its block of `<corruption>.npy` (5N, 32, 32, 3), memory-mapped."""
    images, labels = _block(folder, corruption, severity, CIFAR_SHAPE)
    return ImageSet(images, labels, classes, name=f"{folder.name} {corruption} {severity}")


def generated(folder: Path, corruption: str | None, severity: int | None) -> ImageSet:
    """The same of a folder that `ncttt data corrupt` has made of any set; classes are known by number only."""
    images, labels = _block(folder, corruption, severity, None)
    classes = numbered(labels, str(folder / "labels.npy"))
    return ImageSet(images, labels, classes, name=f"{folder.name} {corruption} {severity}")


def _block(
    folder: Path, corruption: str | None, severity: int | None, shape: tuple[int, ...] | None
) -> tuple[np.ndarray, np.ndarray]:
    names = sorted(path.stem for path in folder.glob("*.npy") if path.stem != "labels")
    if f"{corruption}{UNFINISHED}" in unfinished(folder):
        raise InputError(f"{folder}: {corruption} is unfinished; run `ncttt data corrupt` again to go on")
    if corruption not in names:
        asked = "corruption and severity must be given" if corruption is None else f"no corruption {corruption!r}"
        raise InputError(f"{folder}: {asked}{nearest(corruption or '', names)}")
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
    return images[start : start + size], labels[start : start + size]


def severities_of(folder: Path) -> tuple[int, ...]:
    """The severities stacked in the files of `folder`: all five, unless it was generated with fewer."""
    found = making(folder).get("severities", SEVERITIES)
    if not isinstance(found, list | tuple) or not found or not set(found) <= set(SEVERITIES):
        raise InputError(f"{folder / MAKING}: severities must be some of {SEVERITIES}, found {found!r:.60}")
    return tuple(found)


def hashes_of(folder: Path) -> dict[str, str]:
    """The hashes of the finished files of a generated set, as they were when it was made."""
    found = making(folder).get("files", {})
    if not isinstance(found, dict):
        raise InputError(f"{folder / MAKING}: files must be names and hashes, found {found!r:.60}")
    return {name: f"sha256:{digits}" for name, digits in found.items()}


def making(folder: Path) -> dict[str, Any]:
    """What `ncttt data corrupt` wrote about a set it made; nothing for a published one."""
    path = folder / MAKING
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text())
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} cannot be read ({error!r})") from error
    if not isinstance(found, dict):
        raise InputError(f"{path}: expected an object, found {found!r:.60}")
    return found


def cifar10_1(folder: Path, version: str, classes: tuple[str, ...]) -> ImageSet:
    """CIFAR-10.1 in its version "v4" (2,021 images) or "v6" (2,000)."""
    images = read_images(folder / f"cifar10.1_{version}_data.npy")
    labels = read_labels(folder / f"cifar10.1_{version}_labels.npy")
    return ImageSet(images, labels, classes, name=f"cifar10.1 {version}")


def read_images(path: Path, shape: tuple[int, ...] | None = CIFAR_SHAPE) -> np.ndarray:
    """A memory-mapped array uint8 (N, *shape), or (N, H, W, 3) of any size; else an error that says what was found."""
    found = read_array(path)
    fits = found.shape[1:] == shape if shape else found.ndim == 4 and found.shape[3] == 3
    if found.dtype != np.uint8 or not fits:
        expected = ", ".join(map(str, shape or ("H", "W", 3)))
        raise InputError(f"{path}: expected uint8 (N, {expected}), found {found.dtype} {found.shape}")
    return found


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
