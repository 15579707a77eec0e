"""CIFAR-10 and CIFAR-100 as published: binary records or pickled batches, both with colour planes."""

from pathlib import Path
from typing import Any

import numpy as np

from ncttt.base.errors import InputError
from ncttt.data.classes import CIFAR10
from ncttt.data.imageset import ImageSet, integers
from ncttt.data.pickles import read_pickle

TRAIN = tuple(f"data_batch_{i}" for i in range(1, 6))
FILES = {"train": TRAIN, "test": ("test_batch",)}
RECORD = 1 + 3 * 32 * 32


def cifar10(root: Path, split: str) -> ImageSet:
    """The 50,000 training ("train") or 10,000 test ("test") images of CIFAR-10, uint8 (N, 32, 32, 3).

    The binary version (`cifar-10-batches-bin`) is read if it is there, else the Python version
    (`cifar-10-batches-py`).
    """
    binary, pickled = root / "cifar-10-batches-bin", root / "cifar-10-batches-py"
    if binary.is_dir() or not pickled.is_dir():
        parts = [_read_binary(binary / f"{name}.bin") for name in FILES[split]]
    else:
        parts = [_read_batch(pickled / name, b"labels") for name in FILES[split]]
    return _join(parts, CIFAR10, f"cifar10 {split}")


def cifar100(root: Path, split: str) -> ImageSet:
    """The 50,000 training or 10,000 test images of CIFAR-100 with the 100 fine labels, uint8 (N, 32, 32, 3)."""
    folder = root / "cifar-100-python"
    names = _entry(read_pickle(folder / "meta"), b"fine_label_names", folder / "meta")
    if not isinstance(names, list) or not all(isinstance(name, bytes) for name in names):
        raise InputError(f"{folder / 'meta'}: `fine_label_names` must be a list of names, found {names!r:.60}")
    classes = tuple(name.decode("utf-8", "replace") for name in names)
    return _join([_read_batch(folder / split, b"fine_labels")], classes, f"cifar100 {split}")


def _read_binary(path: Path) -> tuple[np.ndarray, np.ndarray]:
    if not path.is_file():
        raise InputError(f"{path} is missing")
    found = np.fromfile(path, np.uint8)
    if not len(found) or len(found) % RECORD:
        raise InputError(f"{path}: {len(found)} bytes are not a whole number of {RECORD}-byte records; truncated?")
    records = found.reshape(-1, RECORD)
    return records[:, 1:], records[:, 0]


def _read_batch(path: Path, key: bytes) -> tuple[np.ndarray, np.ndarray]:
    batch = read_pickle(path)
    planes, labels = _entry(batch, b"data", path), _entry(batch, key, path)
    if not isinstance(planes, np.ndarray) or planes.dtype != np.uint8 or planes.shape[1:] != (RECORD - 1,):
        found = f"{planes.dtype} {planes.shape}" if isinstance(planes, np.ndarray) else type(planes).__name__
        raise InputError(f"{path}: `data` must be uint8 (N, {RECORD - 1}), found {found}")
    return planes, integers(labels, str(path))


def _entry(batch: dict[bytes, Any], key: bytes, path: Path) -> Any:
    if key not in batch:
        raise InputError(f"{path}: no entry {key.decode()!r}")
    return batch[key]


def _join(parts: list[tuple[np.ndarray, np.ndarray]], classes: tuple[str, ...], name: str) -> ImageSet:
    labels = np.concatenate([part[1] for part in parts])
    images = np.empty((sum(len(part[0]) for part in parts), 32, 32, 3), np.uint8)
    start = 0
    for planes, _ in parts:
        images[start : start + len(planes)] = planes.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        start += len(planes)
    return ImageSet(images, labels, classes, name=name)
