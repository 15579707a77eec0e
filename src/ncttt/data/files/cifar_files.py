"""The files of CIFAR-10 and CIFAR-100: binary records or pickled batches, both with colour planes.

Pickles are read without running what a pickle may ask to run. Nothing in the file reaches numpy's own unpickling
either: given a type with fields of its own making, that would take bytes of the file for addresses of objects. Arrays
are rebuilt here, from plain integers and bytes.
"""

import pickle
from pathlib import Path
from typing import Any

import numpy as np

from ncttt.base.errors import InputError
from ncttt.data.files.imageset import ImageSet, integers

TORONTO = "https://www.cs.toronto.edu/~kriz/"
PLANES = 3 * 32 * 32
Part = tuple[np.ndarray, np.ndarray]  # planes uint8 (N, 3072), labels (N,)
TYPES = ("u1", "i4", "i8")


class _Type:
    """What `numpy.dtype` stands for in a CIFAR file: an integer of one, four or eight bytes."""

    def __init__(self, name: str | bytes, *_align_and_copy: Any) -> None:
        self.name = name.decode("ascii", "replace") if isinstance(name, bytes) else name
        if self.name not in TYPES:
            raise InputError(f"it holds an array of {name!r}; expected one of {', '.join(TYPES)}")

    def __setstate__(self, state: tuple) -> None:
        order = state[1]
        if order in (">", b">"):
            raise InputError("it holds an array of big-endian integers")


class _Array:
    """What numpy's `_reconstruct` makes: empty at first, filled by its state (version, shape, type, order, bytes)."""

    array: np.ndarray | None = None

    def __init__(self, *_class_and_shape: Any) -> None:
        pass

    def __setstate__(self, state: tuple) -> None:
        _, shape, kind, columns_first, content = state
        if not isinstance(kind, _Type) or not isinstance(content, bytes):
            raise InputError("it holds an array that is not made of integers")
        self.array = np.frombuffer(content, f"<{kind.name}").reshape(shape, order="F" if columns_first else "C")


def _encode(text: str, encoding: str) -> bytes:
    # How Python 3 writes bytes in the old protocols.
    if encoding != "latin1":
        raise InputError(f"it asks for the encoding {encoding!r}")
    return text.encode("latin1")


# All that the official files name: how numpy rebuilds an array, under its old and its new address, and the
# encoding by which bytes are saved.
ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy._core.multiarray", "_reconstruct"): _Array,
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Type,
    ("_codecs", "encode"): _encode,
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module_name: str, global_name: str, /) -> Any:
        try:
            return ALLOWED[module_name, global_name]
        except KeyError:
            raise InputError(f"it asks for {module_name}.{global_name}, which no CIFAR file needs") from None


def read_pickle(path: Path) -> dict[bytes, Any]:
    """The dictionary in a CIFAR file, its keys as bytes; anything but arrays and plain containers is refused."""
    try:
        with path.open("rb") as file:
            content = _Unpickler(file, encoding="bytes").load()
    except FileNotFoundError:
        raise InputError(f"{path} is missing") from None
    except InputError as error:
        raise InputError(f"{path}: {error}; nothing was executed") from None
    except Exception as error:  # a damaged pickle can fail in any way
        raise InputError(f"{path}: truncated or not a pickle ({error})") from error
    if not isinstance(content, dict):
        raise InputError(f"{path}: expected a dictionary, found {type(content).__name__}")
    return {key: value.array if isinstance(value, _Array) else value for key, value in content.items()}


def read_batch(path: Path, key: bytes) -> Part:
    """A pickled batch: its planes, and its labels under `key`."""
    batch = read_pickle(path)
    planes, labels = entry(batch, b"data", path), entry(batch, key, path)
    if not isinstance(planes, np.ndarray) or planes.dtype != np.uint8 or planes.shape[1:] != (PLANES,):
        found = f"{planes.dtype} {planes.shape}" if isinstance(planes, np.ndarray) else type(planes).__name__
        raise InputError(f"{path}: `data` must be uint8 (N, {PLANES}), found {found}")
    return planes, integers(labels, str(path))


def entry(batch: dict[bytes, Any], key: bytes, path: Path) -> Any:
    """What a pickled dictionary holds under `key`."""
    if key not in batch:
        raise InputError(f"{path}: no entry {key.decode()!r}")
    return batch[key]


def read_records(path: Path, labels: int = 1) -> Part:
    """A binary batch: records of so many labels, of which the last is the finest, and the planes of an image."""
    if not path.is_file():
        raise InputError(f"{path} is missing")
    content, size = np.fromfile(path, np.uint8), labels + PLANES
    if not len(content) or len(content) % size:
        raise InputError(f"{path}: {len(content)} bytes are not a whole number of {size}-byte records; truncated?")
    records = content.reshape(-1, size)
    return records[:, labels:], records[:, labels - 1]


def joined(parts: list[Part], classes: tuple[str, ...], name: str) -> ImageSet:
    """The images of all parts, their planes interleaved."""
    labels = np.concatenate([part[1] for part in parts])
    images = np.empty((sum(len(part[0]) for part in parts), 32, 32, 3), np.uint8)
    start = 0
    for planes, _ in parts:
        images[start : start + len(planes)] = planes.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        start += len(planes)
    return ImageSet(images, labels, classes, name=name)
