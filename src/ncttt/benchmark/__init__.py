"""Grids of methods x scenes x protocols x seeds, measured once, kept as rows, compared with intervals."""

from ncttt.benchmark.attribution import Attribution, attribute, plans
from ncttt.benchmark.cell import Cell
from ncttt.benchmark.cells import cells_of
from ncttt.benchmark.driver import Outcome, Watcher, run_cells
from ncttt.benchmark.executors import executor
from ncttt.benchmark.statistics import Difference, paired_difference
from ncttt.benchmark.store import Store
from ncttt.grid import Entry, Grid

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
    "run_cells",
]
