"""The trainings of a plan: which are missing, and doing them, several at a time where there are the cores."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from ncttt.base.errors import InputError
from ncttt.base.pools import cores
from ncttt.benchmark.executors import Failure, executor
from ncttt.paper.plan import Plan
from ncttt.training.job import Job
from ncttt.training.run import STATE

State = Literal["ships", "done", "begun", "missing"]


@dataclass(frozen=True)
class Training:
    """A model of a plan with one seed: how it is trained, where, and how far that has come."""

    model: str
    seed: int
    job: Job
    folder: Path
    ships: bool

    @property
    def name(self) -> str:
        """The training in a few words."""
        return f"{self.model}, seed {self.seed}"

    @property
    def state(self) -> State:
        """Whether it ships with the library, is done, begun, or still missing."""
        if self.ships:
            return "ships"
        if (self.folder / "results.json").is_file():
            return "done"
        return "begun" if (self.folder / STATE).is_file() else "missing"


def trainings(plan: Plan, models: Sequence[str], seeds: Sequence[int], home: Path, root: str | None) -> list[Training]:
    """The trainings of these models and of those that they start from, in an order in which they can be done."""
    return [
        Training(
            model, seed, plan.job(model, seed, home, root), plan.folder(model, seed, home), not plan.trained(model)
        )
        for model in plan.needed(list(models))
        for seed in seeds
    ]


def train_missing(
    asked: Sequence[Training], *, device: str, running: dict[str, object], tell: Callable[[str], None]
) -> None:
    """Do what is missing: first what others start from, then several at a time, one on a GPU."""
    left = [training for training in asked if training.state in ("missing", "begun")]
    while left:
        folders = {str(training.folder / "last") for training in left}
        ready = [training for training in left if training.job.start not in folders]
        tell(f"training {', '.join(training.name for training in ready)}")
        _train_together(ready, device, running)
        left = [training for training in left if training not in ready]


def _train_together(ready: Sequence[Training], device: str, running: dict[str, object]) -> None:
    threads = 1 if len(ready) > 1 else cores()
    runs_on = executor(threads=threads, device=device, **running)  # type: ignore[arg-type]
    work = partial(_train, threads=threads, device=device)
    failures = [(one, result) for one, result in runs_on.run(work, ready) if isinstance(result, Failure)]
    if failures:
        training, failure = failures[0]
        raise InputError(f"the training of {training.name} failed, {len(failures)} in all: {failure.error}")


def _train(training: Training, threads: int, device: str) -> str:
    # In a process of its own, which needs torch; a list of trainings does not.
    from ncttt.training.launch import run_job
    from ncttt.training.watching import EpochLines

    lines = EpochLines(training.name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of a branch in the middle of its training
        run_job(training.job, training.folder, resume=True, device=device, threads=threads, observers=[lines])
    return str(training.folder)
