"""Which shifts the demonstration on digits shows, chosen on validation images.

    python study/demo_shifts.py [--out runs/demo]

All nineteen corruptions at severity 5, with the constants for large images, on the 130 validation digits. A corruption
is a candidate if the frozen classifier has at most half of the images right, and batch statistics give at least 20
points and leave at least 5 to the best. On the candidates every method of the demonstration is measured, with the
models that `ncttt demo` trains; of each family the corruption is chosen on which their accuracies lie furthest apart.
The three limits were set after a look at the frozen classifier and at batch statistics on the same images. No test
image is looked at, and no method is preferred: the rule knows only how far they differ.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from ncttt import benchmark
from ncttt.benchmark.grid import Entry, Grid
from ncttt.demo.grids import entries
from ncttt.demo.setups import SETUPS
from ncttt.demo.trainings import trained_models

FAMILIES = {
    "noise": ("gaussian_noise", "shot_noise", "impulse_noise", "speckle_noise"),
    "weather": ("snow", "frost", "fog", "brightness", "spatter"),
    "blur": ("defocus_blur", "glass_blur", "motion_blur", "zoom_blur", "gaussian_blur"),
    "digital": ("contrast", "elastic_transform", "pixelate", "jpeg_compression", "saturate"),
}
FROZEN, GAIN, ROOM = 50.0, 20.0, 5.0  # at most, at least, at least: percent and points
Accuracies = dict[str, dict[str, float]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="runs/demo", help="folder of the demonstration, whose trainings are used")
    options = parser.parse_args()
    models = trained_models(options.out, tell=print)
    plain = [Entry(method=name, checkpoint=models["source"]) for name in ("source", "ptbn")]
    with benchmark.Store(Path(options.out) / "shifts.sqlite") as store:
        still = measured(plain, [name for names in FAMILIES.values() for name in names], models["source"], store)
        candidates = [name for name, each in still.items() if is_candidate(each["source"], each["ptbn"])]
        every = measured(entries(models), candidates, models["source"], store)
    for family, names in FAMILIES.items():
        show(family, names, still, every)


def measured(methods: Sequence[Entry], corruptions: list[str], plain: str, store: benchmark.Store) -> Accuracies:
    """Accuracies in percent by corruption and method, each method on its own model or on the plain one."""
    setup = SETUPS["digits"]
    shift = {"corruptions": corruptions, "severities": [setup.severity], "constants": setup.constants}
    grid = Grid(data="digits", split="val", methods=methods, batch_sizes=[65], **shift)
    outcome = benchmark.run_grid(grid, store)
    benchmark.raise_failures(outcome.failures)
    accuracies: Accuracies = {}
    for row in outcome.rows:
        if row["method"] not in ("source", "ptbn") or row["checkpoint"] == plain:
            accuracies.setdefault(row["corruption"], {})[row["method"]] = 100 * row["accuracy"]
    return accuracies


def is_candidate(frozen: float, statistics: float) -> bool:
    """Whether a classifier fails on a corruption and batch statistics mend a part of it."""
    return frozen <= FROZEN and statistics - frozen >= GAIN and statistics <= 100 - ROOM


def spread(accuracies: dict[str, float]) -> float:
    """Points between the best and the worst of the methods that use batch statistics."""
    adapted = [value for method, value in accuracies.items() if method not in ("source", "lame")]
    return max(adapted) - min(adapted)


def show(family: str, names: Sequence[str], still: Accuracies, every: Accuracies) -> None:
    """Print a family, a line for each corruption, and which one is chosen."""
    candidates = [name for name in names if name in every]
    chosen = max(candidates, key=lambda name: spread(every[name])) if candidates else "none is a candidate"
    print(f"\n{family}: {chosen}")
    for name in names:
        told = f"methods {spread(every[name]):.1f} points apart" if name in every else "no candidate"
        print(f"  {name:18} frozen {still[name]['source']:5.1f} %, PTBN {still[name]['ptbn']:5.1f} %, {told}")


if __name__ == "__main__":
    main()
