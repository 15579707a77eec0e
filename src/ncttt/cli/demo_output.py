"""What `ncttt demo` shows: progress while it trains, then the table."""

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from ncttt.branched import Branched
from ncttt.demo import BATCH, Row, train_demo
from ncttt.training import Epoch, Observer
from ncttt.training.watching import summary

HEADERS = (
    "source",
    "batch\nstats",
    "NC-TTT",
    "gain:\nstats",
    "gain:\ngradient",
    "shift\nscore",
    "steps",
)


def train_with_progress(epochs: int, seed: int, notes: Console) -> Branched:
    """Train with a bar on a terminal, with a line every five epochs elsewhere."""
    if not notes.is_terminal:
        notes.print(f"training on digits, {epochs} epochs")
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[state]}"), TimeRemainingColumn())
    with Progress(*columns, console=notes, transient=True) as progress:
        task = progress.add_task("training", total=epochs, state="")

        class Watch(Observer):
            def epoch(self, epoch: Epoch) -> None:
                state = summary(epoch)
                progress.update(task, advance=1, state=state)
                if not notes.is_terminal and epoch.number % 5 == 0:
                    notes.print(f"epoch {epoch.number} of {epochs}: {state}")

        return train_demo(epochs, seed, [Watch()])


def show(rows: list[Row], seed: int) -> None:
    """Print the table and how to read it."""
    console = Console()
    console.print(_table(rows))
    console.print(
        f"Seed {seed}; batches of {BATCH}, each adapted to anew, without labels; one network in every column. "
        "The gradient's own gain is NC-TTT minus batch statistics. The shift score is lower on drifted images; "
        "a batch that scores like held-out training digits takes no step."
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
