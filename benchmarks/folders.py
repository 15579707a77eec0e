"""Peak memory and time of a grid on folders of image files: python benchmarks/folders.py --images 1000 3000

Each number of images is a tree of JPEG files of 64 to 500 pixels, brought to 224 pixels, and a process of its own. The
figures must not grow with the number of images: files are decoded piece by piece into the grid's cache.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image

import ncttt
from ncttt.benchmark import Entry, Grid, Store, cells_of, run_grid

SIZE = 224


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, nargs="+", default=[1000, 3000])
    parser.add_argument("--measure", type=Path, help="measure this tree in this process")
    options = parser.parse_args()
    if options.measure:
        measure(options.measure)
        return
    print("| images | planning, s | planning, MiB | grid, s | grid, MiB |\n|---:|---:|---:|---:|---:|", flush=True)
    for count in options.images:
        with tempfile.TemporaryDirectory() as scratch:
            make_tree(Path(scratch) / "photos", count)
            command = [sys.executable, __file__, "--measure", scratch]
            figures = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
        print(f"| {count} | " + " | ".join(figures) + " |", flush=True)


def make_tree(folder: Path, count: int) -> None:
    """JPEG files of two classes, `test/<class>/<number>.jpg`, of smooth noise."""
    random = np.random.default_rng(0)
    for number in range(count):
        place = folder / "test" / ("dark" if number % 2 else "bright")
        place.mkdir(parents=True, exist_ok=True)
        coarse = Image.fromarray(random.integers(0, 256, (16, 16, 3), dtype=np.uint8))
        width, height = random.integers(64, 501, 2).tolist()
        coarse.resize((width, height), Image.Resampling.BICUBIC).save(place / f"{number}.jpg", quality=90)


def measure(scratch: Path) -> None:
    """Plan and run a grid of one method on clean and corrupted images; print seconds and largest memory of both."""
    torch.manual_seed(0)
    net = ncttt.models.small(num_classes=2, width=4)
    model = ncttt.attach(net, "layer1", ncttt.Source(), torch.rand(2, 3, SIZE, SIZE))
    ncttt.save(model, scratch / "model")
    entry = Entry(method="source", checkpoint=str(scratch / "model"))
    grid = Grid(data=str(scratch / "photos"), methods=[entry], corruptions=["clean", "contrast"], batch_sizes=[32])
    start = time.perf_counter()
    cells_of(grid)
    print(round(time.perf_counter() - start, 1), peak())
    start = time.perf_counter()
    with Store(scratch / "rows.sqlite") as store:
        outcome = run_grid(grid, store, executor="here", progress=False)
    assert not outcome.failures, outcome.failures
    print(round(time.perf_counter() - start, 1), peak())


def peak() -> int:
    """MiB of this process at most so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


if __name__ == "__main__":
    main()
