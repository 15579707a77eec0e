"""`ncttt demo`: the main job in a minute, on embedded data."""

import dataclasses
import json as json_module
import time


def demo(*, epochs: int = 15, seed: int = 0, json: bool = False) -> None:
    """Train on digits, shift the test images, adapt without labels, and show who gained what.

    Args:
        epochs: Passes over the 1,167 training images.
        seed: Of the weights, the order of images and the noise.
        json: Print the rows as JSON, for scripts.
    """
    from rich.console import Console

    from ncttt.cli.demo_output import show, train_with_progress
    from ncttt.demo import evaluate_demo

    start = time.perf_counter()
    notes = Console(stderr=True)  # what is not the result, so that the output can be piped
    rows = evaluate_demo(train_with_progress(epochs, seed, notes))
    if json:
        print(json_module.dumps([dataclasses.asdict(row) for row in rows]))
        return
    show(rows, seed)
    taken = time.perf_counter() - start
    notes.print(f"[dim]{taken:.0f} s. Next: ncttt demo --seed 1, ncttt data list, ncttt --help[/dim]")
