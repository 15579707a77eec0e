"""Cells measured on a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from ncttt.base.errors import InputError
from ncttt.benchmark.executors import RETRIES, Executor, Failure, Result, Task, attempt


def on_ray(threads: int, workers: int | None, address: str | None, device: str) -> Executor:
    """The executor `ray`, if Ray is installed."""
    _ray()
    return OnRay(threads, workers, address, gpus=int(device != "cpu"))


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
