"""Hashes of files, and the check of a folder against a table of them."""

import hashlib
from collections.abc import Mapping
from pathlib import Path


def file_hash(path: Path, algorithm: str = "md5") -> str:
    """The hash of a file as `algorithm:hexdigits`, read in pieces."""
    digest = hashlib.new(algorithm)
    with path.open("rb") as file:
        while piece := file.read(1 << 18):
            digest.update(piece)
    return f"{algorithm}:{digest.hexdigest()}"


def mismatches(folder: Path, hashes: Mapping[str, str]) -> dict[str, str]:
    """What is wrong with the files of `folder` by name: missing, or another hash; empty when all agree.

    >>> mismatches(Path("nowhere"), {"a.bin": "md5:0"})
    {'a.bin': 'missing'}
    """
    wrong = {}
    for name, expected in hashes.items():
        path = folder / name
        if not path.is_file():
            wrong[name] = "missing"
        elif (digest := file_hash(path, expected.partition(":")[0])) != expected:
            wrong[name] = f"expected {expected}, found {digest}"
    return wrong
