"""Read the pickled CIFAR files without running what a pickle may ask to run.

Nothing in the file reaches numpy's own unpickling either: given a type with fields of its own making, that would
take bytes of the file for addresses of objects. Arrays are rebuilt here, from plain integers and bytes.
"""

import pickle
from pathlib import Path
from typing import Any

import numpy as np

from ncttt.base.errors import InputError

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
            found = _Unpickler(file, encoding="bytes").load()
    except FileNotFoundError:
        raise InputError(f"{path} is missing") from None
    except InputError as error:
        raise InputError(f"{path}: {error}; nothing was executed") from None
    except Exception as error:  # a damaged pickle can fail in any way
        raise InputError(f"{path}: truncated or not a pickle ({error})") from error
    if not isinstance(found, dict):
        raise InputError(f"{path}: expected a dictionary, found {type(found).__name__}")
    return {key: value.array if isinstance(value, _Array) else value for key, value in found.items()}
