"""`ncttt data get`: fetch a data set."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

EXAMPLE = "ncttt data get cifar10"


def get(name: str, *, root: str | None = None) -> None:
    """Fetch a data set and verify it; does nothing when it is there already.

    Args:
        name: Name of the set, as `ncttt data list` shows it.
        root: Folder of the data sets; else $NCTTT_DATA, else the user's cache folder.
    """
    from ncttt.data import get as fetch

    with _bar() as progress:
        place = fetch(name, root, progress=progress, say=lambda line: print(line, file=sys.stderr))
    print(place)


@contextmanager
def _bar() -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar on standard error, fed with bytes (done, total); None when nobody watches."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

    columns = BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("bytes", total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total or None)
