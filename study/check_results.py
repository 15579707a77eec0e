"""Measures a random handful of the committed rows again, and says whether they are what they were.

    python study/check_results.py [--cells 5] [--seed N]

Rows are those of `results/cifar10c_*.csv`, cells those of the grids `study/*` of `ncttt bench`. A row is found by its
cell's key, so that a changed model, corruption or setting shows as a missing row. On the machine that measured them
accuracies are equal; on another, rounding moves an image here and there, and a stream that learns carries that on.
"""

import argparse
import random
import sys
from pathlib import Path

import yaml

from ncttt import configs
from ncttt.benchmark import Cell, Entry, Grid, cells_of, read_rows
from ncttt.benchmark.measure import measure

RESULTS, GRIDS = Path("results"), configs.HOME / "bench/study"
CACHE = Path("runs/cache")
TOLERANCE = {"episodic": 0.005, "online": 0.01, "continual": 0.02}  # of an accuracy


def grid_of(path: Path) -> Grid:
    """The grid of a configuration file."""
    asked = yaml.safe_load(path.read_text())
    return Grid(**{**asked, "methods": [Entry(**entry) for entry in asked["methods"]]})


def committed() -> list[tuple[Cell, float]]:
    """The cells of the study that have a row, with its accuracy."""
    accuracy = {
        row["key"]: row["accuracy"] for path in sorted(RESULTS.glob("cifar10c_*.csv")) for row in read_rows(path)
    }
    measured = []
    for path in sorted(GRIDS.glob("*.yaml")):
        cells = cells_of(grid_of(path))
        there = [(cell, accuracy[cell.key]) for cell in cells if cell.key in accuracy]
        print(f"{path}: {len(there)} of {len(cells)} cells are committed")
        measured += there
    if not measured:
        sys.exit(f"no row in {RESULTS} belongs to a cell of {GRIDS}")
    return measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=5)
    parser.add_argument("--seed", type=int, help="of the draw; by default another one each time")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(10_000)
    every = committed()
    print(f"{min(options.cells, len(every))} of them are measured again (--seed {seed})")
    wrong = 0
    for cell, before in random.Random(seed).sample(every, min(options.cells, len(every))):
        now = measure(cell, CACHE).columns["accuracy"]
        same = abs(now - before) <= TOLERANCE[cell.protocol]
        wrong += not same
        word = "same " if same else "OTHER"
        print(f"{word} {cell.title}: {100 * before:.2f} before, {100 * now:.2f} now", flush=True)
    sys.exit(int(wrong > 0))


if __name__ == "__main__":
    main()
