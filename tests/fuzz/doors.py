"""Three doors through which files of strangers come in, as functions of bytes that may raise an `InputError` alone.

`tests/fuzz/run.py` fuzzes them, `tests/faults/test_corpus.py` replays the inputs that once found something.
"""

import copy
import hashlib
import io
import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from safetensors.torch import load as deserialize
from safetensors.torch import save as serialize

import ncttt
from ncttt import InputError
from ncttt.benchmark import Store, read_rows
from ncttt.benchmark.rows import COLUMNS, write_csv
from ncttt.data.files.image_files import FORMATS, decode, decode_hashed

EDITS = {"description": 1, "tensors": 2, "body": 3}  # a first byte that says: what follows are edits of a whole input
ODD = [
    None,
    True,
    -1,
    0,
    1.5,
    10**400,
    float("nan"),
    float("inf"),
    "",
    "x",
    "../..",
    "os:system",
    [],
    [1],
    {},
    {"name": 1},
]
ODD += [
    "\x00",
    "\ud800",
    "hf://a/b",
    "layer1",
    ["layer1"] * 2,
    [[[1]]],
    [3, 16, 16],
    [3, -1, 16],
    [0.5] * 3,
    "9" * 5000,
]
TYPES = [torch.bool, torch.int64, torch.complex64, torch.float16, torch.float64, torch.bfloat16, torch.uint8]


def checkpoint(content: bytes, folder: Path) -> None:
    """A description, or edits of a whole one, or of its tensors, whose digest is put right so that they are read."""
    described, tensors = (folder / "whole.json").read_bytes(), (folder / "whole.safetensors").read_bytes()
    if content[:1] == bytes([EDITS["description"]]):
        described = json.dumps(_edited(json.loads(described), content[1:])).encode()
    elif content[:1] == bytes([EDITS["tensors"]]):
        tensors = _edited_tensors(tensors, content[1:])
        digest = hashlib.sha256(tensors).hexdigest()
        described = json.dumps(json.loads(described) | {"weights_sha256": digest}).encode()
    else:
        described = content
    (folder / "model.json").write_bytes(described)
    (folder / "model.safetensors").write_bytes(tensors)
    _clear(lambda: ncttt.load(folder))


def _edited(value: Any, edits: bytes) -> Any:
    """A tree of JSON values in which each pair of bytes has put something odd in some place."""
    for place, odd in zip(edits[::2], edits[1::2], strict=False):
        places = list(_places(value))
        if places:
            inside, key = places[place % len(places)]
            inside[key] = copy.deepcopy(ODD[odd % len(ODD)])
    return value


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in list(keys):
        yield value, key
        yield from _places(value[key])


def _edited_tensors(content: bytes, edits: bytes) -> bytes:
    tensors = deserialize(content)
    for place, edit in zip(edits[::2], edits[1::2], strict=False):
        name = sorted(tensors)[place % len(tensors)]
        kind, number = divmod(edit, 16)
        if kind % 5 == 0:
            tensors[name] = tensors[name].to(TYPES[number % len(TYPES)])
        elif kind % 5 == 1:
            tensors[name] = torch.full_like(tensors[name].float(), (float("nan"), float("inf"), -1e38)[number % 3])
        elif kind % 5 == 2:
            tensors[name] = tensors[name].flatten()[:number].clone()
        elif kind % 5 == 3 and len(tensors) > 1:
            del tensors[name]
        else:
            tensors[f"x{number}"] = tensors[name].clone()
    return serialize({name: tensor.contiguous() for name, tensor in tensors.items()})


def rows(content: bytes, folder: Path) -> None:
    """A store if it begins like one, else a CSV file, or lines behind a right header."""
    if content[:1] == bytes([EDITS["body"]]):
        content = (folder / "whole.csv").read_bytes().partition(b"\n")[0] + b"\n" + content[1:]
    path = folder / ("rows.sqlite" if content.startswith(b"SQLite") else "rows.csv")
    path.write_bytes(content)
    _clear(lambda: read_rows(path))


def images(content: bytes, folder: Path) -> None:
    """An image file, read in both ways that there are."""
    path = folder / "image.png"
    path.write_bytes(content)
    _clear(lambda: decode(path, 16))
    _clear(lambda: decode_hashed(path, 16, "crop"))


def _clear(read: Callable[[], object]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            read()
        except InputError as error:
            if not str(error):
                raise AssertionError("an error without words") from error


DOORS = {door.__name__: door for door in (checkpoint, rows, images)}


def prepare(folder: Path) -> dict[str, list[bytes]]:
    """Put into a folder what the doors need beside their input, and return whole inputs of each to begin with."""
    return {
        "checkpoint": [
            _description(folder),
            *(bytes([1, n, n]) for n in range(32)),
            *(bytes([2, n, 5 * n]) for n in range(48)),
        ],
        "rows": list(_rows(folder)),
        "images": list(_images()),
    }


def _description(folder: Path) -> bytes:
    torch.manual_seed(0)
    net = ncttt.models.small(num_classes=3, width=2)
    model = ncttt.attach(net, "layer3", ncttt.NCTTT(channels=4, hidden=4), torch.rand(2, 3, 16, 16))
    ncttt.save(model, folder)
    (folder / "whole.json").write_bytes((folder / "model.json").read_bytes())
    (folder / "whole.safetensors").write_bytes((folder / "model.safetensors").read_bytes())
    return (folder / "model.json").read_bytes()


def _rows(folder: Path) -> Iterator[bytes]:
    row = dict.fromkeys(COLUMNS) | {"key": "a", "data": "digits", "split": "test", "corruption": "fog", "severity": 5}
    row |= {"method": "source", "images": 10, "seed": 0, "accuracy": 0.5, "accuracy_at": '{"0": 0.5}', "settings": "{}"}
    write_csv([row], folder / "whole.csv")
    whole = (folder / "whole.csv").read_bytes()
    yield whole
    yield bytes([EDITS["body"]]) + whole.partition(b"\n")[2]
    with Store(folder / "whole.sqlite") as store:
        store.write(row)
    yield (folder / "whole.sqlite").read_bytes()


def _images() -> Iterator[bytes]:
    pixels = np.random.default_rng(0).integers(0, 256, (20, 24, 3), np.uint8)
    for kind in FORMATS:
        for mode in ("RGB", "L"):
            file = io.BytesIO()
            Image.fromarray(pixels).convert(mode).save(file, format=kind)
            yield file.getvalue()
