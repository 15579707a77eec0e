from .attribution import Attribution, AttributionOutcome, attribute, attributions_json, write_attributions
from .cell import Cell
from .cells import cells_of
from .draws import ImageDraw
from .driver import Outcome, raise_failures, run_cells, run_grid
from .entries import Entry
from .executors import executor
from .grid import Grid
from .intervals import Difference, paired_difference
from .scenarios import Scenario
from .store import Store, read_rows
from .tuning import Tuning, TuningResult, trials_json, tune, write_trials

__all__ = [
    "Attribution",
    "AttributionOutcome",
    "Cell",
    "Difference",
    "Entry",
    "Grid",
    "ImageDraw",
    "Outcome",
    "Scenario",
    "Store",
    "Tuning",
    "TuningResult",
    "attribute",
    "attributions_json",
    "cells_of",
    "executor",
    "paired_difference",
    "raise_failures",
    "read_rows",
    "run_cells",
    "run_grid",
    "trials_json",
    "tune",
    "write_attributions",
    "write_trials",
]
