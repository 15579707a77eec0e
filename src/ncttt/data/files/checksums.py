"""Hashes of files, the check of a folder against a table of them, and the hashes that a first fetch leaves."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from ncttt.base.files import replace_file
from ncttt.base.schema import check_keys, matching, read_json


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


def kept_hashes(path: Path) -> dict[str, str]:
    """The hashes by address that earlier fetches have left in a file; none where there is no such file."""
    if not path.is_file():
        return {}
    kept = read_json(path)
    rule = matching("sha256:[0-9a-f]{64}", "sha256: and 64 hexadecimal digits")
    check_keys(kept, dict.fromkeys(kept, rule) if isinstance(kept, dict) else {}, str(path))
    return kept


def keep_hash(path: Path, url: str, digest: str) -> None:
    """Remember what an address gave."""
    kept = kept_hashes(path) | {url: digest}
    replace_file(path, (json.dumps(kept, indent=1, sort_keys=True) + "\n").encode())
