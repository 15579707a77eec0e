"""What `corruptions.json` says about a folder, and the refusal to mix two makings in one."""

import hashlib
import json
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from ncttt.data.corruptions.stack import write_atomically
from ncttt.data.corruptions.textures import picture_paths
from ncttt.errors import InputError

Array = np.ndarray
NAME = "corruptions.json"
FORMAT = 1  # raise it when the same settings begin to give other bytes
_HASHED_AT_ONCE = 2**24


def describe(
    images: Array, labels: Array, severities: Sequence[int], seed: int, table: str, frost: str | Path | None
) -> dict[str, Any]:
    """Everything the content of the folder depends on."""
    return {
        "format": FORMAT,
        "seed": int(seed),
        "constants": table,
        "severities": [int(severity) for severity in severities],
        "frost": "procedural" if frost is None else photograph_fingerprint(frost),
        "images": list(images.shape),
        "images_sha256": fingerprint(images),
        "labels_sha256": fingerprint(labels),
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
        strange = [output.name for output in outputs if output.exists()]
        if strange:
            raise InputError(
                f"{folder} holds {', '.join(strange)} but no {NAME}, so made by something else; choose another folder"
            )
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
        told = "; ".join(f"{name} {found.get(name)!r} there, {asked[name]!r} asked" for name in differing)
        raise InputError(f"{folder} holds corruptions made with other settings ({told}); choose another folder")
    return True


def write(folder: Path, settings: dict[str, Any]) -> None:
    write_atomically(folder / NAME, (json.dumps(settings, indent=2) + "\n").encode())


def _own_version() -> str:
    try:
        return version("ncttt")
    except PackageNotFoundError:
        return "unknown"
