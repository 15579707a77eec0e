"""What `corruptions.json` says about a folder, and the refusal to mix two makings in one."""

import hashlib
import json
import reprlib
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from ncttt.base.errors import InputError
from ncttt.data.corruptions.constants import CONSTANTS, CORRUPTIONS, EXTRA
from ncttt.data.corruptions.stack import write_atomically
from ncttt.data.corruptions.textures import picture_paths

Array = np.ndarray
NAME = "corruptions.json"
FORMAT = 2  # raise it when the same settings begin to give other bytes
_HASHED_AT_ONCE = 2**24
_SHORT = reprlib.Repr()
_SHORT.maxlevel, _SHORT.maxstring = 1, 100  # an error need not print tables


def describe(
    images: Array, labels: Array, severities: Sequence[int], seed: int, table: str, frost: str | Path | None
) -> dict[str, Any]:
    """Everything the content of the folder depends on."""
    return {
        "format": FORMAT,
        "seed": int(seed),
        "constants": table,
        "constant_values": {name: [list(level) for level in levels] for name, levels in CONSTANTS[table].items()},
        "severities": [int(severity) for severity in severities],
        "frost": "procedural" if frost is None else photograph_fingerprint(frost),
        "images": list(images.shape),
        "images_sha256": fingerprint(images),
        "labels_sha256": fingerprint(labels.astype(np.int64)),  # by value: the integer type does not matter
        "libraries": {name: version(name) for name in ("numpy", "scipy", "pillow")},
        "version": _own_version(),
    }


def fingerprint(array: Array) -> str:
    """The SHA-256 of an array's bytes, in C order, read a stretch at a time so that a memory map stays one."""
    digest = hashlib.sha256()
    rows = max(1, _HASHED_AT_ONCE // max(1, array[:1].nbytes))
    for start in range(0, len(array), rows):
        digest.update(np.ascontiguousarray(array[start : start + rows]).data)
    return digest.hexdigest()


def photograph_fingerprint(folder: str | Path) -> str:
    """Says that photographs were used, which and how many: by content, because folders move."""
    digest = hashlib.sha256()
    paths = picture_paths(folder)
    for path in paths:
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return f"{len(paths)} photographs, sha256 {digest.hexdigest()}"


def refuse_other_making(folder: Path, asked: dict[str, Any], outputs: Sequence[Path]) -> bool:
    """Whether `folder` already belongs to these settings; output of other settings, or of unknown ones, is an error."""
    path = folder / NAME
    if not path.exists():
        _refuse_strangers(folder)
        return False
    try:
        found = json.loads(path.read_text())
        differing = [name for name in asked if found.get(name) != asked[name]]
    except (ValueError, AttributeError) as error:
        raise InputError(f"{path} cannot be read ({error}); choose another folder") from error
    if all(output.exists() for output in outputs):
        # Nothing is left to do, so it does not matter that a newer library might do it otherwise.
        differing = [name for name in differing if name not in ("libraries", "version")]
    if differing:
        told = "; ".join(
            f"{name} {_SHORT.repr(found.get(name))} there, {_SHORT.repr(asked[name])} asked" for name in differing
        )
        raise InputError(f"{folder} holds corruptions made with other settings ({told}); choose another folder")
    return True


def _refuse_strangers(folder: Path) -> None:
    """Without a description, any file that this or a later run would take for its own, whole or not, is an error."""
    endings = (".npy", ".npy.part", ".npy.done")
    names = ["labels.npy", *(name + ending for name in CORRUPTIONS + EXTRA for ending in endings)]
    strange = [name for name in names if (folder / name).exists()]
    if strange:
        raise InputError(
            f"{folder} holds {', '.join(strange)} but no {NAME}, so made by something else; "
            "choose another folder, or delete them"
        )


def write(folder: Path, settings: dict[str, Any]) -> None:
    """Describe `folder`, none of whose files is finished yet."""
    _write(folder / NAME, {**settings, "files": {}})


def record(finished: Path, *, anew: bool) -> None:
    """Put the SHA-256 of a finished file into the description of its folder; `anew`, even if there is one."""
    path = finished.with_name(NAME)
    told = json.loads(path.read_text())
    files = told.get("files", {})
    if anew or finished.name not in files:
        files[finished.name] = file_sha256(finished)
        _write(path, {**told, "files": dict(sorted(files.items()))})


def file_sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while stretch := file.read(2**18):
            digest.update(stretch)
    return digest.hexdigest()


def _write(path: Path, told: dict[str, Any]) -> None:
    write_atomically(path, (_lines(told) + "\n").encode())


def _lines(told: Any, indent: str = "") -> str:
    """JSON with a line for each name and none for the numbers of a list."""
    if not isinstance(told, dict) or not told:
        return json.dumps(told)
    inner = indent + "  "
    rows = (f"{inner}{json.dumps(name)}: {_lines(value, inner)}" for name, value in told.items())
    return "{\n" + ",\n".join(rows) + f"\n{indent}}}"


def _own_version() -> str:
    try:
        return version("ncttt")
    except PackageNotFoundError:
        return "unknown"
