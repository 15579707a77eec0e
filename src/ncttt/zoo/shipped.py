"""Trained models that ship with the package, a folder each: weights, description, configuration, metrics, results."""

import shutil
from pathlib import Path

from ncttt.base.errors import InputError

HOME = Path(__file__).parent
SHIPPED = ("config.json", "environment.json", "metrics.csv", "results.json")


def names() -> list[str]:
    """The names that `ncttt.load` knows."""
    return sorted(folder.name for folder in HOME.iterdir() if (folder / "model.json").is_file())


def ship(run: str | Path, name: str) -> Path:
    """Copy the last model of a finished training, with what tells how it was made, into the zoo."""
    run, folder = Path(run), HOME / name
    parts = (*SHIPPED, "last/model.safetensors", "last/model.json")
    missing = [part for part in parts if not (run / part).is_file()]
    if missing:
        raise InputError(f"{run} is no finished training: {missing[0]} is missing")
    folder.mkdir(exist_ok=True)
    for part in parts:
        shutil.copyfile(run / part, folder / Path(part).name)
    return folder
