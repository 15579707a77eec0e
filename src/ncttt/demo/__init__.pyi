from .grids import cifar10_grid, digits_grid, pretrained_grid
from .run import Demo, run_demo
from .table import demo_table
from .trainings import trained_models

__all__ = [
    "Demo",
    "cifar10_grid",
    "demo_table",
    "digits_grid",
    "pretrained_grid",
    "run_demo",
    "trained_models",
]
