"""Figure 8: every layer against every scale of the in-distribution noise, each a training of its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ncttt.base.files import replace_file
from ncttt.benchmark.driver import raise_failures
from ncttt.benchmark.tuning.config import Tuning
from ncttt.benchmark.tuning.run import changed, run_of, trials_json, tune
from ncttt.benchmark.tuning.trials import combinations
from ncttt.paper.plan import Plan
from ncttt.paper.settings import Settings
from ncttt.paper.trainings import Training, trainings
from ncttt.training.job import Job


def search_job(plan: Plan, settings: Settings) -> Job:
    """The training that every pair of layer and scale changes."""
    return replace(plan.job(plan.search["model"], 0, settings.home, settings.root), test=None)


def tuning_of(plan: Plan, settings: Settings) -> Tuning:
    """The search as a tuning, a training with each seed."""
    own: dict[str, Any] = {name: value for name, value in plan.search.items() if name != "model"}
    trained = own.pop("trained") | {"recipe.seed": settings.seeds_of(plan)}
    images = settings.images or own.pop("images", None)
    return Tuning(
        data=plan.data,
        trained=trained,
        root=settings.root,
        batch_size=plan.batch_of(images),
        device=settings.device,
        images=images,
        **{name: value for name, value in own.items() if name != "images"},
    )


def searched_trainings(plan: Plan, settings: Settings) -> list[Training]:
    """The trainings of the search, and those that they start from."""
    job, home = search_job(plan, settings), search_folder(settings)
    start = plan.settings(plan.search["model"]).get("start")
    before = trainings(plan, [start], [0], settings.home, settings.root) if start in plan.models else []
    each = [changed(job, trained) for trained, _ in combinations(tuning_of(plan, settings))]
    own = [Training(plan.search["model"], one.recipe.seed, one, run_of(one, home), ships=False) for one in each]
    return [*before, *own]


def search_folder(settings: Settings) -> Path:
    """Where the trials of the search are kept."""
    return settings.home / "figure8"


def run_search(plan: Plan, settings: Settings, tell: Callable[[str], None]) -> Path:
    """Try every pair; returns the file of the trials, as `ncttt tune --json` writes it."""
    tuning, job = tuning_of(plan, settings), search_job(plan, settings)
    if tuning.exception:
        tell(f"exception: {tuning.exception}")
    running = {"executor": settings.executor, "workers": settings.workers, "address": settings.address}
    result = tune(tuning, search_folder(settings), job=job, **running)
    raise_failures(result.failures)
    path = search_folder(settings) / "trials.json"
    content = {"exception": tuning.exception, "trials": trials_json(result.trials)}
    replace_file(path, (json.dumps(content, indent=1) + "\n").encode())
    return path
