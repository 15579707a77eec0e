"""What is installed and what there is to work with, as plain values; only devices need torch."""

from __future__ import annotations

import json
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ncttt import __version__
from ncttt.base.declarations import declaration
from ncttt.data import data_root, list_sets
from ncttt.methods import METHODS
from ncttt.zoo.shipped import HOME, names


def info(root: str | Path | None = None, *, devices: bool = False) -> dict[str, Any]:
    """Versions, methods, networks, trained models and the data sets below `root`, as JSON values.

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


def _devices() -> dict[str, int]:
    import torch  # takes seconds, which the other facts do not need

    return {"threads": torch.get_num_threads(), "cuda": torch.cuda.device_count()}
