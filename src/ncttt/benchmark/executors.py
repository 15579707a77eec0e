"""Where cells are measured: in this process, in several of this machine, or on a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol, TypeVar

from ncttt.base.devices import available
from ncttt.base.errors import InputError, nearest
from ncttt.base.pools import cores, end, fresh_pool, submit

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


def executor(
    name: str, threads: int, workers: int | None = None, address: str | None = None, device: str = "cpu"
) -> Executor:
    """An executor by its name, for cells with so many threads, on that device.

    `workers` processes, by default as many as have a core for each of their threads, and one for a GPU.
    """
    if name not in EXECUTORS:
        raise InputError(f"no executor {name!r}{nearest(name, EXECUTORS)}")
    if workers is not None and workers < 1:
        raise InputError(f"workers must be at least 1; found {workers}")
    if name == "ray":
        _ray()
        return OnRay(threads, workers, address, gpus=int(device != "cpu"))
    available(device)
    if name == "here":
        return Here()
    return Processes(workers or (max(1, cores() // threads) if device == "cpu" else 1))


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
class OnRay:
    """A Ray cluster, or a local one of its own; Ray starts a task anew when its worker dies."""

    threads: int
    workers: int | None = None
    address: str | None = None
    gpus: int = 0

    def run(self, work: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[tuple[Task, Result | Failure]]:
        ray = _ray()
        started = not ray.is_initialized()
        if started:
            own = {"num_cpus": self.workers * self.threads} if self.workers and not self.address else {}
            try:
                ray.init(address=self.address or "local", log_to_driver=False, configure_logging=False, **own)
            except (ConnectionError, ValueError, RuntimeError) as error:
                raise InputError(
                    f"no Ray cluster at {self.address or 'local'}: {' '.join(str(error).split())}"
                ) from None
        try:
            self._check_room(ray)
            remote = ray.remote(num_cpus=self.threads, num_gpus=self.gpus, max_retries=RETRIES - 1)(attempt)
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

    def _check_room(self, ray: Any) -> None:
        """Ray waits for ever for a machine that is large enough."""
        for what, needed in (("CPU", self.threads), ("GPU", self.gpus)):
            most = max((node["Resources"].get(what, 0) for node in ray.nodes()), default=0)
            if most < needed:
                raise InputError(f"a cell needs {needed} {what}; the largest machine of the Ray cluster has {most:g}")


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
        return Failure(f"{type(error).__name__}: {' '.join(str(error).split())[:200]}")


def _ray() -> Any:
    try:
        import ray
    except ImportError:
        raise InputError("--executor ray needs the extra `ray`: pip install 'ncttt[ray]'") from None
    return ray
