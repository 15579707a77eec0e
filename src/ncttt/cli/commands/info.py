"""`ncttt info`: what is installed, what this machine offers, and what there is to work with."""

import json as json_module
import platform
from typing import Any

from ncttt import __version__


def info(*, json: bool = False, root: str | None = None) -> None:
    """Show versions, methods, trained models and data sets.

    Args:
        json: Print one JSON object, for scripts.
        root: Folder of the data sets; else $NCTTT_DATA, else the user's cache folder.
    """
    facts = gather(root)
    if json:
        print(json_module.dumps(facts))
        return
    width = max(map(len, facts))
    for name, value in facts.items():
        lines = _lines(value)
        print(f"{name:<{width}}  {lines[0]}")
        for line in lines[1:]:
            print(f"{'':<{width}}  {line}")


def gather(root: str | None = None) -> dict[str, Any]:
    """What `ncttt info` shows, as JSON values."""
    import torch

    from ncttt.data import data_root, list_sets
    from ncttt.methods import METHODS
    from ncttt.nets import MODELS

    where = data_root(root)
    return {
        "ncttt": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "machine": platform.platform(),
        "threads": torch.get_num_threads(),
        "cuda": torch.cuda.device_count(),
        "methods": list(METHODS),
        "networks": list(MODELS),
        "models": trained_models(),
        "root": str(where),
        "data": [name for name, facts in list_sets(where).items() if facts["present"]],
    }


def trained_models() -> dict[str, dict[str, Any]]:
    """The models of the zoo with their method, their data and their accuracy on its test images, not adapted."""
    from ncttt.zoo import HOME, names

    found = {}
    for name in names():
        config, results = (
            json_module.loads((HOME / name / part).read_text()) for part in ("config.json", "results.json")
        )
        found[name] = {
            "method": config["model"]["method"]["name"],
            "data": config["data"]["name"].split()[0],
            "accuracy": results["test_accuracy"],
        }
    return found


def _lines(value: Any) -> list[str]:
    if isinstance(value, dict):
        width = max(map(len, value), default=0)
        return [f"{name:<{width}}  {_model(facts)}" for name, facts in value.items()] or ["-"]
    return [", ".join(value) or "-"] if isinstance(value, list) else [str(value)]


def _model(facts: dict[str, Any]) -> str:
    return f"{facts['method']}, {facts['accuracy']:.2%} on the test images of {facts['data']}, not adapted"
