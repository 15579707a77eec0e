"""What adaptation costs against a plain forward of the same network, in the settings that the deployment guide names.

    python benchmarks/cost.py [--rounds 9] [--batch 128] [--threads 1] [--out results/speed/cost.csv]
    python benchmarks/cost.py --grid study/field --out results/speed/field.csv

All settings take turns on the same batches of digits under noise, in one process; a ratio is the median over rounds of
its time to that of the forward in the same round. Times are processor time, so that other processes on the machine
disturb them little. The network is the zoo's for CIFAR-10. The cost does not depend on what an image shows, except for
the gate: digits do not look like photographs, so "left to source" is timed as what it does, a forward and a comparison.
With `--grid` the settings are those of a grid's methods, each on its checkpoint, as streams without a reset, and the
images are of the grid's data, because some methods learn only from what they are certain of.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
import yaml
from torch import Tensor

import ncttt
from ncttt import configs
from ncttt.base.csv_files import write_csv
from ncttt.base.provenance import origin
from ncttt.benchmark import Grid
from ncttt.benchmark.cells import checkpoints_of, method_of
from ncttt.model.certainty import judged
from ncttt.zoo.stored import description

MODEL = "cifar10-small-ncttt"
Way = Callable[[Tensor], object]


def forward_of(name: str) -> Callable[[Tensor], Tensor]:
    """A plain forward of a model of the zoo."""
    return torch.inference_mode()(ncttt.load(name))


def ways() -> dict[str, Way]:
    """Each setting by its name, ready to be called."""
    model, forward = ncttt.load(MODEL), forward_of(MODEL)
    baked = ncttt.Adapter(model, ncttt.PTBN())
    baked(torch.rand(64, 3, 32, 32))
    return {
        "forward": forward,
        "baked": torch.inference_mode()(baked.bake()),
        "left to source": lambda images: judged(model, forward(images)),
        "PTBN": ncttt.Adapter(model, ncttt.PTBN()),
        "TENT": ncttt.Adapter(model, ncttt.Tent()),
        # As in the study; with networks of their own, of the same architecture.
        "TTT, four steps": ncttt.Adapter(ncttt.load("cifar10-small-ttt"), steps=4, lr=1e-3),
        "TTT++, four steps": ncttt.Adapter(ncttt.load("cifar10-small-ttt-plus"), steps=4, lr=1e-3),
        "entropy alone, four steps": ncttt.Adapter(model, ncttt.Tent(moves="layer2", copies=4, steps=4, lr=2e-3)),
        "NC-TTT, online": ncttt.Adapter(model, protocol="online", lr=1e-3),
        "NC-TTT, fast": ncttt.Adapter(model, ncttt.NCTTT.fast()),
        "NC-TTT, preset": ncttt.Adapter(model),
    }


def grid_of(name: str) -> Grid:
    """A grid by its name among the configurations."""
    return Grid(**yaml.safe_load((configs.HOME / f"bench/{name}.yaml").read_text()))


def ways_of_grid(grid: Grid) -> dict[str, Way]:
    """Each method of a grid by its label, on the first of its checkpoints."""
    found: dict[str, Way] = {}
    for entry in grid.entries:
        checkpoint = checkpoints_of(entry)[0]
        model, method = ncttt.load(checkpoint), method_of(entry, description(checkpoint), checkpoint)
        if method.has_branch and not method.needs_training():
            model = ncttt.calibrated(model, method, [torch.rand(64, 3, 32, 32)])
        steps = None if entry.steps is None else entry.steps[-1]
        found[entry.label or entry.method] = ncttt.Adapter(model, method, steps=steps, protocol="continual")

    return {"forward": forward_of(MODEL), **found}


def seconds(call: Callable[[], object]) -> float:
    """Processor time of a call, of all its threads."""
    begun = time.process_time()
    call()
    return time.process_time() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--grid", help="name of a grid among the configurations, in place of the guide's settings")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    grid = grid_of(options.grid) if options.grid else None
    name = str(grid.data) if grid else "digits"
    data = ncttt.data.load(name, "test", corruption="gaussian_noise", severity=5)
    images, _ = next(iter(ncttt.data.batches(data, options.batch)))
    settings = ways_of_grid(grid) if grid else ways()
    times: dict[str, list[float]] = {name: [] for name in settings}
    for turn in range(options.rounds + 1):
        for name in list(settings)[:: 1 if turn % 2 else -1]:
            times[name].append(seconds(lambda name=name: settings[name](images)))
    rows = []
    for name, taken in times.items():
        ratios = [own / plain for own, plain in zip(taken[1:], times["forward"][1:], strict=True)]  # the first warms up
        rows.append(
            (name, round(statistics.median(ratios), 2), round(1e3 * statistics.median(taken[1:]) / len(images), 3))
        )
        print(f"{name:28} {rows[-1][1]:8.2f} x forward {rows[-1][2]:8.3f} ms an image", flush=True)
    if options.out:
        about = origin()
        columns = ("setting", "times_forward", "ms_per_image", "batch", *about)
        more = (len(images), *about.values())
        write_csv(options.out, columns, [(*row, *more) for row in rows])


if __name__ == "__main__":
    main()
