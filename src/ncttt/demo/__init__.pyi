from .grids import cifar10_grid, digits_grid, pretrained_grid
from .table import demo_table
from .trainings import trained_models

__all__ = [
    "cifar10_grid",
    "demo_table",
    "digits_grid",
    "pretrained_grid",
    "trained_models",
]
