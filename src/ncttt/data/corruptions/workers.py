"""Work spread over processes, a few pieces ahead at most."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from typing import TypeVar

from ncttt.base.errors import InputError
from ncttt.base.pools import cores, fresh_pool, submit
from ncttt.data.corruptions.apply import is_whole

Task = TypeVar("Task")
Result = TypeVar("Result")
_WORTH_A_PROCESS = 30  # pieces: as long as it takes to start a process and import what it needs


def check_workers(workers: int | None) -> None:
    """Raise an `InputError` unless this is a number of processes, or None for one a core."""
    if workers is not None and (not is_whole(workers) or workers < 1):
        raise InputError(f"{workers!r} workers; expected at least 1, or None for one a core")


def worker_count(asked: int | None, pieces: int) -> int:
    """How many processes to use: as asked, or one a core if there is enough to do; 1 means this process itself."""
    return max(1, min(asked or min(cores(), pieces // _WORTH_A_PROCESS), pieces))


def run_all(work: Callable[[Task], Result], tasks: Iterable[Task], workers: int) -> Iterator[Result]:
    """The result of `work` on each task, as they come in; tasks are drawn only shortly before they are worked on."""
    if workers == 1:
        yield from map(work, tasks)
        return
    tasks = iter(tasks)
    pool = fresh_pool(workers)
    try:
        waiting: set[Future] = set(submit(pool, work, islice(tasks, 2 * workers)))
        while waiting:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()
            waiting |= set(submit(pool, work, islice(tasks, len(done))))
    except BrokenProcessPool as error:
        raise InputError(
            "a worker process was killed (out of memory?); run again to go on, with fewer workers"
        ) from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
