"""The demonstration: every method from one start, on clean and on shifted images, with and without its steps."""

from ncttt.demo.grids import cifar10_grid, digits_grid, pretrained_grid
from ncttt.demo.table import demo_table
from ncttt.demo.trainings import trained_models

__all__ = ["cifar10_grid", "demo_table", "digits_grid", "pretrained_grid", "trained_models"]
