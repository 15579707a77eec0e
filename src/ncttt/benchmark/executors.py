"""Where cells are measured: in this process or in several of this machine; on a Ray cluster by `ray_executor`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Protocol, TypeVar

from ncttt.base.devices import available
from ncttt.base.errors import InputError
from ncttt.base.numbers import check_threads
from ncttt.base.pools import cores, end, fresh_pool, submit
from ncttt.base.registry import Registry, load_address

RETRIES = 3  # deaths of workers until a task is given up
Task = TypeVar("Task")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Failure:
    """Why a task has no result."""

    error: str


class Executor(Protocol):
    """Works on tasks, in any order, and yields each with its result as soon as there is one."""

    def run(self, work: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[tuple[Task, Result | Failure]]:
        """Tasks and what came of them; what `work` raises becomes a `Failure`."""
        ...


def executor(
    name: str, threads: int, workers: int | None = None, address: str | None = None, device: str = "cpu"
) -> Executor:
    """An executor by its name, for cells with so many threads, on that device.

    `workers` processes, by default as many as have a core for each of their threads, and one for a GPU.
    """
    make = EXECUTORS.find(name)
    if workers is not None and workers < 1:
        raise InputError(f"workers must be at least 1; found {workers}")
    check_threads("workers", workers)
    return make(threads, workers, address, device)


def _here(threads: int, workers: int | None, address: str | None, device: str) -> Executor:
    available(device)
    return Here()


def _processes(threads: int, workers: int | None, address: str | None, device: str) -> Executor:
    available(device)
    return Processes(workers or (max(1, cores() // threads) if device == "cpu" else 1))


# A name, and what makes the executor of threads, workers, address and device.
EXECUTORS: Registry[Callable[[int, int | None, str | None, str], Executor]] = Registry(
    "executor",
    "ncttt.executors",
    lambda: {
        "here": lambda: _here,
        "processes": lambda: _processes,
        "ray": partial(load_address, "ncttt.benchmark.ray_executor:on_ray"),
    },
)


class Here:
    """One task after another in this process."""

    def run(self, work: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[tuple[Task, Result | Failure]]:
        return ((task, attempt(work, task)) for task in tasks)


@dataclass(frozen=True)
class Processes:
    """Several processes of this machine; when one dies, what was in hand begins anew in fresh ones."""

    workers: int

    def run(self, work: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[tuple[Task, Result | Failure]]:
        left = dict.fromkeys(range(len(tasks)), 0)  # number of a task: how often its worker died
        pools, any_result = 0, False
        while left:
            if pools == RETRIES and not any_result:
                _check_that_workers_start()
            pools += 1
            # One of those in hand when a process died has killed it: they go one by one, so that no other is blamed.
            suspects = sorted((number for number, deaths in left.items() if deaths), key=left.__getitem__)
            workers, numbers = (1, suspects) if suspects else (self.workers, list(left))
            for number, result in _until_one_dies(work, tasks, numbers, workers, ahead=1 if suspects else 2 * workers):
                if result is None:
                    left[number] += 1
                    if left[number] < RETRIES:
                        continue
                    result = Failure(f"the worker process died {RETRIES} times")
                else:
                    any_result = True
                del left[number]
                yield tasks[number], result


def _check_that_workers_start() -> None:
    with fresh_pool(1) as pool:
        try:
            submit(pool, _Attempt(abs), [0])[0].result()
        except BrokenProcessPool:
            raise InputError("worker processes die as they start; try --executor here to see why") from None


def _until_one_dies(
    work: Callable[[Task], Result], tasks: Sequence[Task], numbers: Sequence[int], workers: int, ahead: int
) -> Iterator[tuple[int, Any]]:
    """Numbers of tasks and results; None for those that were in hand when a process died, which ends the pool."""
    pool, queue = fresh_pool(min(workers, len(numbers))), iter(numbers)
    waiting: dict[Future, int] = {}
    try:
        while True:
            for number in islice(queue, ahead - len(waiting)):
                (future,) = submit(pool, _Attempt(work), [tasks[number]])
                waiting[future] = number
            if not waiting:
                return
            for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                yield waiting[future], future.result()
                del waiting[future]
    except BrokenProcessPool:
        yield from ((number, _finished(future)) for future, number in waiting.items())
    except BaseException:
        end(pool)
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


@dataclass(frozen=True)
class _Attempt:
    work: Callable[[Any], Any]

    def __call__(self, task: Any) -> Any:
        return attempt(self.work, task)


def attempt(work: Callable[[Task], Result], task: Task) -> Result | Failure:
    """The result, or why there is none."""
    try:
        return work(task)
    except Exception as error:
        return Failure(f"{type(error).__name__}: {error}")


def _finished(future: Future) -> Any:
    """The result of a future that was done before its pool broke, else None."""
    return future.result() if future.done() and not future.cancelled() and future.exception() is None else None
