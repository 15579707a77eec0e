"""`ncttt demo`: the main job in some minutes, on embedded data, with every method and a page of results."""

import sys
import time
from pathlib import Path
from typing import Literal

from ncttt.base.errors import InputError

EXAMPLE = "ncttt demo --seed 1"
GROUP = "begin"


def demo(
    *,
    data: Literal["digits", "cifar10"] = "digits",
    pretrained: bool = False,
    epochs: int = 12,
    images: int = 500,
    seed: int = 0,
    root: str | None = None,
    out: str = "runs/demo",
    json: bool = False,
) -> None:
    """Train, shift the test images, adapt to them without labels by every method, and show who gained what.

    Args:
        data: digits, which come with the package, or cifar10 (first: ncttt data get cifar10) with the shipped models.
        pretrained: Take the shipped model of digits instead of training; methods with other branches are left out.
        epochs: Passes over the training digits; the model of each method then takes a quarter as many.
        images: Test images of each kind.
        seed: Of the weights, the order of images and the noise.
        root: Where CIFAR-10 lies.
        out: Folder for models, rows and the page.
        json: Print the rows as JSON, for scripts.
    """
    import json as json_module

    from ncttt.benchmark import Store, raise_failures, run_grid
    from ncttt.cli.bench_output import show
    from ncttt.demo import cifar10_grid, demo_table, digits_grid, pretrained_grid, trained_models
    from ncttt.report.page import examples_of, judge, write_page

    began = time.monotonic()
    if images < 1:  # asked before anything is trained
        raise InputError(f"images must be at least 1; found {images}")
    if data == "cifar10":
        grid = cifar10_grid(images, seed, root)
    elif pretrained:
        grid = pretrained_grid(images, seed)
    else:
        grid = digits_grid(trained_models(out, epochs, seed, tell=_tell), images, seed)
    with Store(Path(out) / "rows.sqlite") as store:
        outcome = run_grid(grid, store, predictions=True)
        raise_failures(outcome.failures)
        rows = outcome.rows
        shown = {"examples": examples_of(store, rows, 12), "comparisons": judge(store, rows)}
    page = write_page(rows, out, title=f"Every method on shifted {data}", **shown)
    if json:
        print(json_module.dumps(rows))
        return
    show(*demo_table(rows, rows[0]["checkpoint"]))
    print(_EXPLAINED.format(images=images, seed=seed))
    _tell(f"{time.monotonic() - began:.0f} s. The page: {page}")
    _tell(_NEXT[data])


def _tell(text: str) -> None:
    """What is not the result goes to standard error, so that the output can be piped."""
    print(text, file=sys.stderr, flush=True)


_EXPLAINED = """\
Accuracy in percent, {images} images of each kind in batches of 100, each adapted to anew, without labels; seed {seed}.
"by statistics" is what the batch's own statistics gave over the source's on the method's own model, "by steps" what the
method's steps gave on top. With so few images, differences of a point or two are chance."""
_NEXT = {
    "digits": "Next: ncttt demo --seed 1; ncttt data get cifar10 && ncttt demo --data cifar10; ncttt adapt --help",
    "cifar10": "Next: ncttt bench --config configs/study/severity5_episodic.yaml; ncttt adapt --help",
}
