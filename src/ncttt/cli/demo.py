"""`ncttt demo`: the main job in a minute, on embedded data."""

import dataclasses
import json as json_module
import time

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from ncttt.demo import BATCH, Row, evaluate_demo, train_demo
from ncttt.training import Epoch

HEADERS = (
    "source",
    "batch\nstats",
    "NC-TTT",
    "gain:\nstats",
    "gain:\ngradient",
    "shift\nscore",
    "steps",
)


def demo(*, epochs: int = 15, seed: int = 0, json: bool = False) -> None:
    """Train on digits, shift the test images, adapt without labels, and show who gained what.

    Args:
        epochs: Passes over the 1,167 training images.
        seed: Of the weights, the order of images and the noise.
        json: Print the rows as JSON, for scripts.
    """
    start = time.perf_counter()
    # What is not the result goes to stderr, so that the output can be piped.
    notes = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[state]}"), TimeRemainingColumn())
    with Progress(*columns, console=notes, transient=True) as progress:
        task = progress.add_task("training", total=epochs, state="")

        def report(epoch: Epoch) -> None:
            state = f"accuracy {epoch.accuracy:.1%}, auxiliary {epoch.auxiliary:.3f}"
            progress.update(task, advance=1, state=state)
            if not notes.is_terminal and epoch.number % 5 == 0:
                notes.print(f"epoch {epoch.number} of {epochs}: {state}")

        model = train_demo(epochs, seed, report)
    rows = evaluate_demo(model)
    if json:
        print(json_module.dumps([dataclasses.asdict(row) for row in rows]))
        return
    console = Console()
    console.print(_table(rows))
    console.print(
        f"Seed {seed}; batches of {BATCH}, each adapted to anew, without labels; one network in every column. "
        "The gradient's own gain is NC-TTT minus batch statistics. The shift score is lower on drifted images; "
        "a batch that scores like held-out training digits takes no step."
    )
    notes.print(
        f"[dim]{time.perf_counter() - start:.0f} s. Next: ncttt demo --seed 1, ncttt data list, ncttt --help[/dim]"
    )


def _table(rows: list[Row]) -> Table:
    table = Table(title="Accuracy on shifted digits, %")
    table.add_column("test\nimages")
    for name in HEADERS:
        table.add_column(name, justify="right")
    for row in rows:
        gains = (row.statistics - row.source, row.adapted - row.statistics)
        table.add_row(
            row.images,
            *(f"{value:.1f}" for value in (row.source, row.statistics, row.adapted)),
            *(f"{value:+.1f}" for value in gains),
            f"{row.score:.3f}",
            f"{row.steps:.1f}",
        )
    return table
