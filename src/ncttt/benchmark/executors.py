"""Where cells are measured: in this process, in several of this machine, or on a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol, TypeVar

from ncttt.errors import InputError, nearest
from ncttt.pools import cores, end, fresh_pool, submit

RETRIES = 3  # deaths of workers until a task is given up
EXECUTORS = ("here", "processes", "ray")
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


def executor(name: str, threads: int, workers: int | None = None, address: str | None = None) -> Executor:
    """An executor by its name; `workers` processes, by default as many as have a core for each of their threads."""
    if name not in EXECUTORS:
        raise InputError(f"no executor {name!r}{nearest(name, EXECUTORS)}")
    if workers is not None and workers < 1:
        raise InputError(f"workers must be at least 1; found {workers}")
    if name == "here":
        return Here()
    if name == "processes":
        return Processes(workers or max(1, cores() // threads))
    return OnRay(threads, address)


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
        while left:
            # One of those in hand when a process died has killed it: each is tried alone, so that no other is blamed.
            suspects = [number for number, deaths in left.items() if deaths]
            for number, result in self._until_one_dies(work, tasks, suspects[:1] or list(left)):
                if result is None:
                    left[number] += 1
                    if left[number] < RETRIES:
                        continue
                    result = Failure(f"the worker process died {RETRIES} times")
                del left[number]
                yield tasks[number], result

    def _until_one_dies(
        self, work: Callable[[Task], Result], tasks: Sequence[Task], numbers: Sequence[int]
    ) -> Iterator[tuple[int, Any]]:
        """Numbers and results; None for those that were in hand when a process died, which ends the pool."""
        pool, waiting = fresh_pool(min(self.workers, len(numbers))), {}
        queue = iter(numbers)

        def hand_over(count: int) -> None:
            for number in islice(queue, count):
                (future,) = submit(pool, _Attempt(work), [tasks[number]])
                waiting[future] = number

        try:
            hand_over(2 * self.workers)
            while waiting:
                done, _ = wait(waiting, return_when=FIRST_COMPLETED)
                for future in done:
                    yield waiting[future], future.result()
                    del waiting[future]
                hand_over(len(done))
        except BrokenProcessPool:
            yield from ((number, _finished(future)) for future, number in waiting.items())
        except BaseException:
            end(pool)
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


@dataclass(frozen=True)
class OnRay:
    """A Ray cluster, or a local one of its own; Ray starts a task anew when its worker dies."""

    threads: int
    address: str | None = None

    def run(self, work: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[tuple[Task, Result | Failure]]:
        ray = _ray()
        started = not ray.is_initialized()
        if started:
            ray.init(address=self.address, log_to_driver=False, configure_logging=False)
        try:
            remote = ray.remote(num_cpus=self.threads, max_retries=RETRIES)(attempt)
            queue, waiting = iter(tasks), {}
            ahead = 2 * max(1, int(ray.cluster_resources().get("CPU", 1)) // self.threads)
            while True:
                for task in islice(queue, ahead - len(waiting)):
                    waiting[remote.remote(work, task)] = task
                if not waiting:
                    return
                for done in ray.wait(list(waiting))[0]:
                    yield waiting.pop(done), _fetched(ray, done)
        finally:
            if started:
                ray.shutdown()


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


def _fetched(ray: Any, done: Any) -> Any:
    try:
        return ray.get(done)
    except ray.exceptions.RayError as error:
        return Failure(f"{type(error).__name__}: {str(error).splitlines()[0]}")


def _ray() -> Any:
    try:
        import ray
    except ImportError:
        raise InputError("--executor ray needs the extra `ray`: pip install 'ncttt[ray]'") from None
    return ray
