"""ncttt: test-time training of image classifiers.

Everything is imported on first use, so that the command line answers at once and adapting a model needs torch alone.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ncttt import data, methods, models, noise, norm
    from ncttt.adaptation import Trace
    from ncttt.adapter import Adapter
    from ncttt.branched import Branched, attach
    from ncttt.checkpoint import load, save
    from ncttt.errors import InputError
    from ncttt.methods import METHODS, NCTTT, PTBN, Method, Objective, Source
    from ncttt.training import train

__version__ = "0.1.0"

__all__ = [
    "METHODS",
    "NCTTT",
    "PTBN",
    "Adapter",
    "Branched",
    "InputError",
    "Method",
    "Objective",
    "Source",
    "Trace",
    "attach",
    "data",
    "load",
    "methods",
    "models",
    "noise",
    "norm",
    "save",
    "train",
]

_HOMES = {
    "Adapter": "adapter",
    "Branched": "branched",
    "InputError": "errors",
    "METHODS": "methods",
    "Method": "methods",
    "NCTTT": "methods",
    "Objective": "methods",
    "PTBN": "methods",
    "Source": "methods",
    "Trace": "adaptation",
    "attach": "branched",
    "load": "checkpoint",
    "save": "checkpoint",
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
