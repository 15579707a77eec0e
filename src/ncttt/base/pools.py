"""Pools of processes that are started afresh, deaf to Ctrl-C, and leave no orphans behind a killed parent."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import connection, get_context, parent_process, resource_tracker
from threading import Thread


def cores() -> int:
    """The processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def fresh_pool(workers: int) -> ProcessPoolExecutor:
    """Started afresh, not forked: the parent may hold threads (torch does) whose locks a fork would freeze."""
    return ProcessPoolExecutor(workers, get_context("spawn"), _die_with_parent)


def submit(pool: ProcessPoolExecutor, work: Callable, tasks: Iterable) -> list[Future]:
    """Hand over `tasks`; the pool starts its processes here."""
    with deaf_to_interrupts():
        return [pool.submit(work, task) for task in tasks]


def end(pool: ProcessPoolExecutor) -> None:
    """Stop the processes in the middle of what they do."""
    for process in list((getattr(pool, "_processes", None) or {}).values()):
        process.terminate()


@contextmanager
def deaf_to_interrupts() -> Iterator[None]:
    """Ctrl-C reaches every process of a terminal; those started here keep it blocked, so only the parent answers it.

    Blocked, not ignored: this process gets what came meanwhile when the block ends, and other threads are left alone.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # else the first process starts it, which lets signals through again
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
