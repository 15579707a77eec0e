"""Sharing models by a repository of the Hugging Face hub: what is pushed is complete, what is pulled is verified."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ncttt import __version__
from ncttt.base.errors import InputError
from ncttt.zoo.card import model_card
from ncttt.zoo.description import SHARED
from ncttt.zoo.hub import CARD, DESCRIPTION, LIMITS, RECORDS, WEIGHTS, fetch, hub_name, is_hub_name, upload
from ncttt.zoo.stored import check_checkpoint, checkpoint_folder


def push(model: str | Path, repository: str, *, license: str | None = None, private: bool = False) -> str:
    """Put a model and its card into the repository `user/name`; returns the address.

    `model` is the folder of a checkpoint or of a training, whose last model is taken, or a name of the zoo. A README.md
    in the folder is pushed as it is; else the card is written from what is recorded. `license` is for its header.
    """
    name, revision = hub_name(repository)
    if revision is not None or is_hub_name(model):
        raise InputError(f"push takes a folder and a repository user/name; found {model} and {repository}")
    folder = checkpoint_folder(model)
    home = folder if (folder / DESCRIPTION).is_file() or not (folder / "last").is_dir() else folder / "last"
    described = check_checkpoint(home)
    if SHARED in described:
        raise InputError(
            f"{model} shares its classifier with another model; ncttt.save it into a folder, and push that"
        )
    files: dict[str, Path | bytes] = {file: home / file for file in (DESCRIPTION, WEIGHTS)}
    files |= {file: folder / file for file in (*RECORDS, CARD) if (folder / file).is_file()}
    if CARD not in files:
        config, results = (_facts(folder / file) for file in RECORDS[:2])
        files[CARD] = model_card(name, described, config, results, license).encode()
    elif license is not None:
        raise InputError(f"{folder / CARD} is the card that is pushed; write the licence there, or remove it")
    return upload(name, files, f"Model saved by ncttt {__version__}", private)


def pull(repository: str, out: str | Path | None = None) -> Path:
    """Fetch a model from the repository `user/name` or `user/name@revision` into a folder, and verify it.

    The folder is `out`, by default one of the repository's name here; it must not hold anything yet.
    """
    folder = Path(out or hub_name(repository).repository.rpartition("/")[2])
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} exists already; choose another folder")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as waiting:
        fetch(repository, Path(waiting))
        check_checkpoint(waiting, called=repository)
        folder.mkdir(exist_ok=True)
        for file in LIMITS:
            if (Path(waiting) / file).is_file():
                os.replace(Path(waiting) / file, folder / file)
    return folder


def _facts(path: Path) -> Mapping[str, Any]:
    if not path.is_file():
        return {}
    try:
        facts = json.loads(path.read_text())
    except ValueError as error:
        raise InputError(f"{path} is not valid JSON: {error}") from None
    return facts if isinstance(facts, dict) else {}
