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
from ncttt.base.files import replace_file
from ncttt.data.corruptions.registry import BY_NAME, CORRUPTIONS, EXTRA, find_corruption
from ncttt.data.corruptions.textures import picture_paths
from ncttt.data.files.arrays import MAKING
from ncttt.data.files.checksums import file_hash

Array = np.ndarray
FORMAT = 2  # raise it when the same settings begin to give other bytes
_HASHED_AT_ONCE = 2**24
_SHORT = reprlib.Repr()
_SHORT.maxlevel, _SHORT.maxstring = 1, 100  # an error need not print tables


def describe(
    images: Array,
    labels: Array,
    corruptions: Sequence[str],
    severities: Sequence[int],
    seed: int,
    table: str,
    frost: str | Path | None,
) -> dict[str, Any]:
    """Everything the content of the folder depends on; constants of all of ours and of those others that are asked."""
    names = dict.fromkeys((*CORRUPTIONS, *EXTRA, *corruptions))
    return {
        "format": FORMAT,
        "seed": int(seed),
        "constants": table,
        "constant_values": {name: [list(level) for level in find_corruption(name).tables[table]] for name in names},
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


def claim(folder: Path, settings: dict[str, Any], corruptions: Sequence[str]) -> None:
    """Describe `folder` as one that these corruptions are made in; one that belongs to something else is an error."""
    told = refuse_other_making(folder, settings, corruptions) or {**settings, "corruptions": [], "files": {}}
    constants = {**told["constant_values"], **settings["constant_values"]}
    names = sorted({*told.get("corruptions", []), *corruptions})
    new = {**told, "constant_values": constants, "corruptions": names}
    if new != told:
        _write(folder / MAKING, new)


def refuse_other_making(folder: Path, asked: dict[str, Any], corruptions: Sequence[str]) -> dict[str, Any]:
    """What the description of `folder` says, nothing if it has none; output of other settings is an error."""
    path = folder / MAKING
    if not path.exists():
        _refuse_strangers(folder, corruptions)
        return {}
    try:
        told = json.loads(path.read_text())
        differing = [name for name in asked if _differs(told.get(name), asked[name])]
    except (ValueError, AttributeError) as error:
        raise InputError(f"{path} cannot be read ({error}); choose another folder") from error
    if all((folder / f"{name}.npy").exists() for name in (*corruptions, "labels")):
        # Nothing is left to do, so it does not matter that a newer library might do it otherwise.
        differing = [name for name in differing if name not in ("libraries", "version")]
    if differing:
        said = "; ".join(
            f"{name} {_SHORT.repr(told.get(name))} there, {_SHORT.repr(asked[name])} asked" for name in differing
        )
        raise InputError(f"{folder} holds corruptions made with other settings ({said}); choose another folder")
    return told


def _differs(there: Any, asked: Any) -> bool:
    if isinstance(there, dict) and isinstance(asked, dict):
        # Corruptions from elsewhere may stand on one side alone.
        return any(there[name] != asked[name] for name in there.keys() & asked.keys())
    return there != asked


def _refuse_strangers(folder: Path, corruptions: Sequence[str]) -> None:
    """Without a description, any file that this or a later run would take for its own is an error."""
    names = dict.fromkeys(f"{name}.npy" for name in ("labels", *BY_NAME, *corruptions))
    strange = [name for name in names if (folder / name).exists()]
    if strange:
        raise InputError(
            f"{folder} holds {', '.join(strange)} but no {MAKING}, so made by something else; "
            "choose another folder, or delete them"
        )


def record(finished: Path, *, anew: bool) -> None:
    """Put the SHA-256 of a finished file into the description of its folder; `anew`, even if there is one."""
    path = finished.with_name(MAKING)
    told = json.loads(path.read_text())
    files = told.get("files", {})
    if anew or finished.name not in files:
        files[finished.name] = file_hash(finished, "sha256").removeprefix("sha256:")
        _write(path, {**told, "files": dict(sorted(files.items()))})


def _write(path: Path, told: dict[str, Any]) -> None:
    replace_file(path, (_lines(told) + "\n").encode())


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
