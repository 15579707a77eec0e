"""Snapshots: the states of streams on disk, a file for each version, written whole or not at all.

A file is safetensors, its header JSON: nothing in it is executed when it is read. A state is nested (settings,
histories of an optimizer, tensors), so its tensors are numbered and the rest of it is JSON that names them.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as serialize
from torch import Tensor

from ncttt.base.errors import InputError
from ncttt.base.files import replace_file
from ncttt.base.schema import Rule, check_keys, matching, parsed_json, whole
from ncttt.serve.settings import NAME

FORMAT = "ncttt stream 1"
SUFFIX = ".safetensors"
RULES = {
    "stream": matching(NAME.pattern, "the name of a stream"),
    "version": whole(),
    "frozen": Rule("true or false", lambda value: isinstance(value, bool)),
    "images": whole(),
    "time": Rule("a time in seconds", lambda value: isinstance(value, int | float)),
    "cause": Rule("a text", lambda value: isinstance(value, str)),
    "weights": matching("[0-9a-f]{64}", "a hash of 64 hexadecimal digits"),
}


class Facts(NamedTuple):
    """What a snapshot says of its state: whose it is, how it came about, and a hash of the source model's weights."""

    stream: str
    version: int
    frozen: bool
    images: int
    time: float
    cause: str
    weights: str


class Snapshots:
    """A folder of snapshots, `STREAM/VERSION.safetensors`, of which `kept` stay for each stream, denser the newer.

    `fence` raises an exception if a stream may not be written, or may no longer once it was.
    """

    def __init__(self, folder: Path, kept: int, fence: Callable[[str], None] = lambda stream: None):
        self.folder, self.kept, self._fence = folder, kept, fence
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot keep states in {folder}: {error.strerror}") from None

    def names(self) -> list[str]:
        """The streams that have a snapshot."""
        return sorted(path.name for path in self.folder.iterdir() if NAME.fullmatch(path.name) and path.is_dir())

    def versions(self, stream: str) -> list[int]:
        """The versions of a stream, the oldest first."""
        numbers = (path.name.removesuffix(SUFFIX) for path in (self.folder / stream).glob(f"*{SUFFIX}"))
        return sorted(int(number) for number in numbers if number.isdecimal())

    def write(self, facts: Facts, state: Mapping[str, Any]) -> None:
        """Write a version; once this returns the disk has it. Versions beyond the number that is kept are removed."""
        self._fence(facts.stream)
        path = self._file(facts.stream, facts.version)
        path.parent.mkdir(exist_ok=True)
        tensors: dict[str, Tensor] = {}
        header = {"format": FORMAT, "facts": json.dumps(facts._asdict()), "state": json.dumps(packed(state, tensors))}
        replace_file(path, serialize(tensors, header | {"sha256": _hash(tensors, header)}))
        try:
            self._fence(facts.stream)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        for version in spare(self.versions(facts.stream), self.kept):
            self._file(facts.stream, version).unlink(missing_ok=True)

    def read(self, stream: str, version: int) -> tuple[Facts, dict[str, Any]]:
        """A version of a stream; an `InputError` names a file that is damaged or none of ours."""
        path = self._file(stream, version)
        try:
            with safe_open(str(path), framework="pt") as stored:
                header, tensors = stored.metadata() or {}, {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
        except (SafetensorError, OSError) as error:
            raise InputError(f"{path} is no snapshot of a stream: {error}") from None
        found = header.pop("sha256", None)
        if header.keys() != {"format", "facts", "state"} or header["format"] != FORMAT:
            raise InputError(f"{path} is no snapshot of a stream (format {FORMAT!r})")
        if found != _hash(tensors, header):
            raise InputError(f"{path} is damaged: its content has another checksum than was written with it")
        facts = parsed_json(header["facts"], str(path))
        check_keys(facts, RULES, str(path))
        state = unpacked(json.loads(header["state"]), tensors)  # as written: the checksum says so
        if facts["stream"] != stream or facts["version"] != version:
            raise InputError(f"{path} holds version {facts['version']} of stream {facts['stream']!r}")
        return Facts(**{name: facts[name] for name in Facts._fields}), state

    def delete(self, stream: str) -> None:
        """Remove all versions of a stream."""
        shutil.rmtree(self.folder / stream, ignore_errors=True)

    def _file(self, stream: str, version: int) -> Path:
        return self.folder / stream / f"{version:08}{SUFFIX}"


def spare(versions: list[int], kept: int) -> list[int]:
    """Which versions to remove so that so many stay: the newest, the oldest, and between them ever wider gaps.

    >>> stay = []
    >>> for version in range(100):
    ...     stay = [each for each in [*stay, version] if each not in spare([*stay, version], 6)]
    >>> stay
    [0, 64, 92, 96, 98, 99]
    """
    stay, removed = list(versions), []
    while len(stay) > max(kept, 1):
        newest = stay[-1]
        gaps = [(after - before) / (newest - before) for before, after in zip(stay, stay[2:], strict=False)]
        removed.append(stay.pop(1 + gaps.index(min(gaps)) if gaps and kept > 2 else 0))
    return removed


def packed(value: Any, tensors: dict[str, Tensor]) -> Any:
    """A nested value as JSON, whose tensors are put into `tensors` under the names that stand in their place.

    >>> tensors = {}
    >>> packed({"a": torch.zeros(2), 3: [1, "x"]}, tensors)
    {'map': [['a', {'tensor': '0'}], [3, {'list': [1, 'x']}]]}
    >>> unpacked(packed({"a": 1}, {}), {})
    {'a': 1}
    """
    if isinstance(value, Tensor):
        name = str(len(tensors))
        tensors[name] = value.detach().cpu().contiguous()
        return {"tensor": name}
    if isinstance(value, Mapping):
        return {"map": [[key, packed(part, tensors)] for key, part in value.items()]}
    if isinstance(value, list | tuple):
        return {"list": [packed(part, tensors) for part in value]}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise InputError(f"a state with {value!r:.60} cannot be written as tensors and JSON")


def unpacked(value: Any, tensors: Mapping[str, Tensor]) -> Any:
    """The value that `packed` has packed; a tuple is a list."""
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "tensor":
        return tensors[content]
    if kind == "map":
        return {key: unpacked(part, tensors) for key, part in content}
    return [unpacked(part, tensors) for part in content]


def _hash(tensors: Mapping[str, Tensor], header: Mapping[str, str]) -> str:
    digest = hashlib.sha256()
    for name, text in sorted(header.items()):
        digest.update(f"{name} {len(text)} {text}".encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
