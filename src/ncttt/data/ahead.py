"""Work done ahead of its use by threads: results in order, and only a few of them waiting in memory."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def read_ahead(work: Callable[[Item], Result], items: Sequence[Item], workers: int) -> Iterator[Result]:
    """`map(work, items)` by `workers` threads; 0 means none.

    >>> list(read_ahead(abs, [-1, -2, -3], workers=2))
    [1, 2, 3]
    """
    if not workers:
        yield from map(work, items)
        return
    # Threads suffice: Pillow and numpy release the lock. A short queue bounds the memory.
    pool = ThreadPoolExecutor(workers)
    try:
        waiting = deque(pool.submit(work, item) for item in items[: workers + 1])
        for item in items[workers + 1 :]:
            yield waiting.popleft().result()
            waiting.append(pool.submit(work, item))
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
