"""ncttt: test-time training of image classifiers."""

import importlib
from typing import TYPE_CHECKING, Any

from ncttt import methods, models, noise, norm
from ncttt.adaptation import Trace
from ncttt.adapter import Adapter
from ncttt.branched import Branched, attach
from ncttt.checkpoint import load, save
from ncttt.errors import InputError
from ncttt.methods import METHODS, NCTTT, PTBN, Method, Source

if TYPE_CHECKING:
    from ncttt import data
    from ncttt.training import train

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """`ncttt.data` and `ncttt.train` on first use: adapting a model needs torch alone."""
    if name == "data":
        return importlib.import_module("ncttt.data")
    if name == "train":
        return importlib.import_module("ncttt.training").train
    raise AttributeError(f"module 'ncttt' has no attribute {name!r}")


__all__ = [
    "METHODS",
    "NCTTT",
    "PTBN",
    "Adapter",
    "Branched",
    "InputError",
    "Method",
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
