from . import norm
from .branched import Branched, Features, attach
from .certainty import certainty
from .penultimate import penultimate_features
from .snapshot import Snapshot
from .taps import Tap

__all__ = [
    "Branched",
    "Features",
    "Snapshot",
    "Tap",
    "attach",
    "certainty",
    "norm",
    "penultimate_features",
]
