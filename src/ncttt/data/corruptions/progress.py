"""Telling how far the work is: to a callback, to a bar on a terminal, or to nobody."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[int], None]


@contextmanager
def reporting(progress: Callable[[int, int], None] | None, total: int) -> Iterator[Progress]:
    """A function to call with the number of images newly done."""
    if progress is not None:
        yield _counting(progress, total)
    elif sys.stderr.isatty():
        yield from _bar(total)
    else:
        yield lambda count: None


def _counting(progress: Callable[[int, int], None], total: int) -> Progress:
    done = 0

    def report(count: int) -> None:
        nonlocal done
        done += count
        progress(done, total)

    return report


def _bar(total: int) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True)) as bar:
        task = bar.add_task("corrupting", total=total)
        yield lambda count: bar.advance(task, count)
