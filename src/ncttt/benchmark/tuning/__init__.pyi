from .checks import check_tuning
from .config import Tuning
from .run import TuningResult, trials_json, tune, write_trials
from .trials import Trial, TrialResult

__all__ = [
    "Trial",
    "TrialResult",
    "Tuning",
    "TuningResult",
    "check_tuning",
    "trials_json",
    "tune",
    "write_trials",
]
