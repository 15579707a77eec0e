"""Work spread over processes, a few pieces ahead at most, in a way that leaves no orphans behind a killed parent."""

import os
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from multiprocessing import connection, get_context, parent_process
from threading import Thread
from typing import TypeVar

from ncttt.data.corruptions.apply import is_whole
from ncttt.errors import InputError

Task = TypeVar("Task")
Result = TypeVar("Result")
_WORTH_A_PROCESS = 30  # pieces: as long as it takes to start a process and import what it needs


def check_workers(workers: int | None) -> None:
    """Raise an `InputError` unless this is a number of processes, or None for one a core."""
    if workers is not None and (not is_whole(workers) or workers < 1):
        raise InputError(f"{workers!r} workers; expected at least 1, or None for one a core")


def worker_count(asked: int | None, pieces: int) -> int:
    """How many processes to use: as asked, or one a core if there is enough to do; 1 means this process itself."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(asked or min(cores, pieces // _WORTH_A_PROCESS), pieces))


def run_all(work: Callable[[Task], Result], tasks: Iterable[Task], workers: int) -> Iterator[Result]:
    """The result of `work` on each task, as they come in; tasks are drawn only shortly before they are worked on."""
    if workers == 1:
        yield from map(work, tasks)
        return
    tasks = iter(tasks)
    # Started afresh, not forked: the parent may hold threads (torch does) whose locks a fork would freeze.
    pool = ProcessPoolExecutor(workers, get_context("spawn"), _die_with_parent)
    try:
        waiting: set[Future] = _submit(pool, work, islice(tasks, 2 * workers))
        while waiting:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()
            waiting |= _submit(pool, work, islice(tasks, len(done)))
    except BrokenProcessPool as error:
        raise InputError(
            "a worker process was killed (out of memory?); run again to go on, with fewer workers"
        ) from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _submit(pool: ProcessPoolExecutor, work: Callable, tasks: Iterable) -> set[Future]:
    """Hand over `tasks`; the pool starts its processes here."""
    with _deaf_to_interrupts():
        return {pool.submit(work, task) for task in tasks}


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Ctrl-C reaches every process of a terminal; those started here keep it blocked, so only the parent answers it.

    Blocked, not ignored: this process gets what came meanwhile when the block ends, and other threads are left alone.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _die_with_parent() -> None:
    """A pool's worker waits for ever if its parent is killed; watch for that and end."""
    parent = parent_process()
    if parent is not None:
        Thread(target=_end_after, args=(parent.sentinel,), daemon=True).start()


def _end_after(sentinel: int) -> None:
    connection.wait([sentinel])
    os._exit(1)
