"""The trained models that ship, how one is added, and what else is installed; only devices need torch."""

from __future__ import annotations

import json
import platform
import shutil
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ncttt import __version__
from ncttt.base.declarations import declaration
from ncttt.base.errors import InputError
from ncttt.data import data_root, list_sets
from ncttt.data.sets.registry import data_set, is_folder
from ncttt.methods import METHODS, needs_of

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


def info(root: str | Path | None = None, *, devices: bool = False) -> dict[str, Any]:
    """Versions, methods with their needs, networks, trained models and the data sets below `root`, as JSON values.

    With `devices` also how many threads torch uses and how many GPUs it has, for which torch is loaded.
    """
    where = data_root(root)
    return {
        "ncttt": __version__,
        "python": platform.python_version(),
        "torch": version("torch"),
        "machine": platform.platform(),
        **(_devices() if devices else {}),
        "methods": list(METHODS),
        "needs": {name: needs_of(name) for name in METHODS},
        "networks": list(declaration("ncttt.nets.catalogue").values["NAMES"]),
        "models": trained_models(),
        "root": str(where),
        "data": [name for name, facts in list_sets(where).items() if facts["present"]],
    }


def trained_models() -> dict[str, dict[str, Any]]:
    """The models of the zoo with their method, their data and their accuracy on its test images, not adapted."""
    models = {}
    for name in names():
        config, results = (json.loads((HOME / name / part).read_text()) for part in ("config.json", "results.json"))
        models[name] = {
            "method": config["model"]["method"]["name"],
            "data": config["data"]["name"].split()[0],
            "accuracy": results["test_accuracy"],
        }
    return models


def model_for(method: str | None, data: str) -> str:
    """The model that was trained for a method on a data set, or on a set of the same classes.

    Methods without a branch (None) get the one that was trained without, or else the only one there is.

    >>> model_for("nc_ttt", "digits"), model_for(None, "cifar10-c")
    ('digits-small-ncttt', 'cifar10-small-source')
    """
    here = {name: facts["method"] for name, facts in trained_models().items() if _fits(facts["data"], data)}
    wanted = method or "source"
    # Trainings of other models began with a "start", which is no model to compare with.
    fitting = [name for name, own in here.items() if own == wanted and not name.endswith("-start")]
    if not fitting and method is None and len(here) == 1:
        fitting = list(here)
    if len(fitting) == 1:
        return fitting[0]
    choices = f"; there are {', '.join(here)}" if here else ""
    raise InputError(
        f"the zoo has no model for {method or 'methods without a branch'} on {data}{choices}; "
        f"name a checkpoint (--checkpoint, or checkpoint: in an entry of methods)"
    )


def _fits(trained: str, data: str) -> bool:
    """Whether a set has the classes of another, known by the same names; numbers are no names."""
    if trained == data:
        return True
    if is_folder(data):
        return False
    theirs, own = data_set(trained).classes, data_set(data).classes
    return theirs == own and not all(name.isdigit() for name in own)


def _devices() -> dict[str, int]:
    import torch  # takes seconds, which the other facts do not need

    return {"threads": torch.get_num_threads(), "cuda": torch.cuda.device_count()}
