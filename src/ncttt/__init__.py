"""ncttt: test-time training of image classifiers.

Everything is imported on first use, so that the command line answers at once and adapting a model needs torch alone.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ncttt import benchmark, data, methods, models, noise, norm, report, training, zoo
    from ncttt.adaptation import Trace
    from ncttt.adapter import Adapter
    from ncttt.adapting import FolderStream
    from ncttt.branched import Branched, attach
    from ncttt.checkpoint import load, save
    from ncttt.errors import InputError
    from ncttt.methods import METHODS, NCTTT, PTBN, TTT, ClusT3, Lame, Method, Objective, Source, Tent, TTTFlow, TTTPlus
    from ncttt.recipe import Recipe
    from ncttt.training import train

__version__ = "0.1.0"

__all__ = [
    "METHODS",
    "NCTTT",
    "PTBN",
    "TTT",
    "Adapter",
    "Branched",
    "ClusT3",
    "FolderStream",
    "InputError",
    "Lame",
    "Method",
    "Objective",
    "Recipe",
    "Source",
    "TTTFlow",
    "TTTPlus",
    "Tent",
    "Trace",
    "attach",
    "benchmark",
    "data",
    "load",
    "methods",
    "models",
    "noise",
    "norm",
    "report",
    "save",
    "train",
    "training",
    "zoo",
]

_HOMES = {
    "Adapter": "adapter",
    "Branched": "branched",
    "ClusT3": "methods",
    "FolderStream": "adapting",
    "InputError": "errors",
    "Lame": "methods",
    "METHODS": "methods",
    "Method": "methods",
    "NCTTT": "methods",
    "Objective": "methods",
    "PTBN": "methods",
    "Source": "methods",
    "TTT": "methods",
    "TTTFlow": "methods",
    "TTTPlus": "methods",
    "Tent": "methods",
    "Trace": "adaptation",
    "attach": "branched",
    "load": "checkpoint",
    "save": "checkpoint",
    "Recipe": "recipe",
    "train": "training",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"ncttt.{_HOMES[name]}"), name)
    if name in __all__:
        return importlib.import_module(f"ncttt.{name}")
    raise AttributeError(f"module 'ncttt' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
