"""Read the pickled CIFAR files without running what a pickle may ask to run."""

import codecs
import pickle
from pathlib import Path
from typing import Any

import numpy as np

from ncttt.errors import InputError

# All that the official files name: how numpy rebuilds an array, under its old and its new address, and the
# encoding by which Python 2 strings were saved.
_reconstruct = np.empty(0).__reduce__()[0]
ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy._core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("_codecs", "encode"): codecs.encode,
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
    return found
