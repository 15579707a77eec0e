"""The models of the demonstration: a plain classifier of digits, and from it one for each method that trains."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from ncttt.base.errors import InputError
from ncttt.base.pools import cores
from ncttt.base.progress import ProgressDisplay
from ncttt.benchmark.executors import Failure, Processes
from ncttt.training.job import Job
from ncttt.training.launch import run_job
from ncttt.training.recipe import Recipe
from ncttt.training.watching import Observer

SHORT = 4  # the trainings of the methods take so many times fewer epochs than the start


@dataclass(frozen=True)
class Task:
    """A training and the folder it runs in."""

    name: str
    job: Job
    folder: str


def start_job(epochs: int, seed: int) -> Job:
    """A narrow network: digits are simple, and a demonstration should not make anybody wait."""
    recipe = Recipe(epochs=epochs, batch_size=32, lr=0.05, seed=seed)
    settings = {"width": 8, "growth": [1, 2, 4, 8]}
    return Job(data="digits", test=None, network_settings=settings, method="source", recipe=recipe)


# Where each method reads, and how much its loss counts beside the cross-entropy. The weights of TTT++ and ClusT3 were
# chosen for losses without the authors' scale (by default 7 and 30 times as large).
METHODS: dict[str, dict[str, Any]] = {
    "source": {"layer": "layer4"},
    "ttt": {"layer": "layer2", "weight": 0.3},
    "ttt_plus": {"layer": "layer4", "weight": 1.0, "settings": {"base_temperature": None}},
    "clust3": {
        "layer": ["layer2", "layer3"],
        "weight": 0.2,
        "settings": {"projectors": 5, "reduction": "mean"},
    },
    "ttt_flow": {"layer": "layer3"},
    "nc_ttt": {
        "layer": "layer3",
        "weight": 1.0,
        "settings": {
            "moves": "layer1",
            "lr": 1e-3,
            "steps": 4,
            "copies": 1,
            "crop": 1.0,
            "mirror_mean": False,
            "entropy": 0.0,
            "contrast": 1.0,
            "step_size": "fixed",
        },
    },
}


def method_job(method: str, start: Job, folder: Path) -> Job:
    """The short training of a method, from the start in that folder."""
    asked = METHODS[method]
    recipe = start.recipe.but(
        epochs=max(1, start.recipe.epochs // SHORT),
        lr=0.02,
        warmup_steps=0,  # the network is trained already, and bears a steep rise
        auxiliary_weight=asked.get("weight"),
    )
    return replace(
        start,
        start=str(folder),
        method=method,
        layer=asked["layer"],
        method_settings=asked.get("settings", {}),
        recipe=recipe,
    )


def trained_models(
    out: str | Path, epochs: int = 12, seed: int = 0, tell: Callable[[str], None] = lambda text: None
) -> dict[str, str]:
    """Train them all, two and more at a time where there are the cores; the folder of each model by its method.

    A training that is finished in `out`, with the same settings, is not done again, and one that was stopped goes on.
    """
    home = Path(out) / f"digits-{epochs}-epochs-seed-{seed}"
    start = Task("start", start_job(epochs, seed), str(home / "start"))
    tell(f"Training a plain network on digits, {epochs} epochs, from which the model of each method starts:")
    _train(start, threads=1, observers=None)
    first = Path(start.folder) / "last"
    tasks = [Task(method, method_job(method, start.job, first), str(home / method)) for method in METHODS]
    tell("Training a model for each method from it:")
    with ProgressDisplay("trainings", len(tasks), lines=False) as display:
        for done, (task, result) in enumerate(Processes(cores()).run(partial(_train, threads=1), tasks), 1):
            if isinstance(result, Failure):
                raise InputError(f"the training for {task.name} failed: {result.error}")
            tell(f"trained for {task.name}, {done} of {len(tasks)}" + "".join(f"; {warning}" for warning in result))
            display.advance()
    return {task.name: str(Path(task.folder) / "last") for task in tasks}


def _train(task: Task, threads: int, observers: Sequence[Observer] | None = ()) -> list[str]:
    """What the finished training warns of; by default it shows no progress."""
    torch.set_num_threads(threads)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run_job(task.job, task.folder, resume=True, observers=observers)
    return [str(warning.message) for warning in caught if f"epoch {task.job.recipe.epochs}," in str(warning.message)]
