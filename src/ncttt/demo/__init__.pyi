from .run import Demo, cifar10_grid, demo_table, digits_grid, pretrained_grid, run_demo
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
