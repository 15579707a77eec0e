from . import (
    adapt,
    benchmark,
    data,
    methods,
    model,
    models,
    monitor,
    nets,
    noise,
    paper,
    report,
    testing,
    training,
    zoo,
)
from .adapt import Adapter, FolderStream, Trace
from .base.errors import InputError
from .methods import METHODS, NCTTT, PTBN, TTT, TTTMAE, ClusT3, Lame, Method, Objective, Source, Tent, TTTFlow, TTTPlus
from .model import Branched, attach, norm
from .monitor import Monitor
from .training import Recipe, train
from .zoo import info, load, save

__version__: str
__all__ = [
    "METHODS",
    "NCTTT",
    "PTBN",
    "TTT",
    "TTTMAE",
    "Adapter",
    "Branched",
    "ClusT3",
    "FolderStream",
    "InputError",
    "Lame",
    "Method",
    "Monitor",
    "Objective",
    "Recipe",
    "Source",
    "TTTFlow",
    "TTTPlus",
    "Tent",
    "Trace",
    "adapt",
    "attach",
    "benchmark",
    "data",
    "info",
    "load",
    "methods",
    "model",
    "models",
    "monitor",
    "nets",
    "noise",
    "norm",
    "paper",
    "report",
    "save",
    "testing",
    "train",
    "training",
    "zoo",
]
