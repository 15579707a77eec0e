from . import norm
from .branched import Branched, Features, attach
from .penultimate import penultimate_features
from .snapshot import Snapshot
from .taps import Tap

__all__ = [
    "Branched",
    "Features",
    "Snapshot",
    "Tap",
    "attach",
    "norm",
    "penultimate_features",
]
