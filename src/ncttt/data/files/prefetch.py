"""Work done ahead of its use, by threads or processes: results in order, and only a few of them waiting in memory."""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from typing import TypeVar

from ncttt.base.errors import InputError
from ncttt.base.pools import fresh_pool, submit

Item = TypeVar("Item")
Result = TypeVar("Result")


def prefetch(work: Callable[[Item], Result], items: Iterable[Item], workers: int) -> Iterator[Result]:
    """`map(work, items)` by `workers` threads; 0 means none.

    >>> list(prefetch(abs, [-1, -2, -3], workers=2))
    [1, 2, 3]
    """
    if not workers:
        yield from map(work, items)
        return
    # Threads suffice: Pillow and numpy release the lock.
    pool = ThreadPoolExecutor(workers)
    try:
        yield from _in_order(lambda some: [pool.submit(work, item) for item in some], items, workers + 1)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def in_processes(work: Callable[[Item], Result], items: Iterable[Item], workers: int) -> Generator[Result, None, None]:
    """`map(work, items)` by `workers` processes; 1 means this one. Items are drawn shortly before their turn."""
    if workers == 1:
        yield from map(work, items)
        return
    pool = fresh_pool(workers)
    try:
        yield from _in_order(lambda some: submit(pool, work, some), items, 2 * workers)
    except BrokenProcessPool as error:
        raise InputError(
            "a worker process was killed (out of memory?); run again to go on, with fewer workers"
        ) from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _in_order(
    begin: Callable[[Iterable[Item]], list[Future[Result]]], items: Iterable[Item], most: int
) -> Iterator[Result]:
    """Results in the order of the items, of which `most` are at work or waiting: a short queue bounds the memory."""
    items = iter(items)
    waiting = deque(begin(islice(items, most)))
    while waiting:
        yield waiting.popleft().result()
        waiting.extend(begin(islice(items, 1)))
