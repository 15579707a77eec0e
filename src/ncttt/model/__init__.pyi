from . import norm
from .baked import Baked
from .branched import Branched, Features, attach
from .certainty import certainty_of
from .features import penultimate_features
from .snapshot import Snapshot
from .source_facts import calibrated
from .taps import Tap

__all__ = [
    "Baked",
    "Branched",
    "Features",
    "Snapshot",
    "Tap",
    "attach",
    "calibrated",
    "certainty_of",
    "norm",
    "penultimate_features",
]
