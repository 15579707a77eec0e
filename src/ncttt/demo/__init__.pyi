from .grids import cifar10_grid, digits_grid, pretrained_grid
from .live import finding, watch
from .run import Demo, run_demo
from .stream import DemoStream, demo_stream
from .table import demo_table, explained
from .times import relative_times
from .trainings import trained_models
from .verdict import verdict

__all__ = [
    "Demo",
    "DemoStream",
    "cifar10_grid",
    "demo_stream",
    "demo_table",
    "digits_grid",
    "explained",
    "finding",
    "pretrained_grid",
    "relative_times",
    "run_demo",
    "trained_models",
    "verdict",
    "watch",
]
