from .attribution import Attribution, attribute, plans
from .cell import Cell
from .cells import cells_of
from .driver import Outcome, Watcher, run_cells
from .executors import executor
from .grid import Entry, Grid
from .reading import read_rows
from .statistics import Difference, paired_difference
from .store import Store

__all__ = [
    "Attribution",
    "Cell",
    "Difference",
    "Entry",
    "Grid",
    "Outcome",
    "Store",
    "Watcher",
    "attribute",
    "cells_of",
    "executor",
    "paired_difference",
    "plans",
    "read_rows",
    "run_cells",
]
