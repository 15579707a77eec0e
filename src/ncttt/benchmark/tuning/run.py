"""A tuning from its configuration to its result: models trained once each, trials measured, the best confirmed."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from ncttt.base.csv_files import write_csv
from ncttt.base.errors import InputError, nearest
from ncttt.base.provenance import origin
from ncttt.benchmark import executors
from ncttt.benchmark.driver import Failures, run_cells
from ncttt.benchmark.store import Store
from ncttt.benchmark.tuning.checks import check_tuning
from ncttt.benchmark.tuning.config import Tuning
from ncttt.benchmark.tuning.trials import Settings, Trial, TrialResult, cells_of_trials, planned, ranked
from ncttt.data.files.resizing import SQUARE
from ncttt.training.job import Job, read_job
from ncttt.training.launch import run_job
from ncttt.training.recipe import Recipe
from ncttt.training.start import start_digest
from ncttt.training.watching import Observer

GROUPS = ("network_settings", "method_settings", "recipe")


@dataclass(frozen=True)
class TuningResult:
    """All trials, the best first; the best of them again on fresh images; and why cells failed."""

    trials: list[TrialResult]
    confirmed: list[TrialResult]
    failures: Failures


def tune(
    tuning: Tuning,
    out: str | Path,
    *,
    executor: str = "processes",
    workers: int | None = None,
    address: str | None = None,
    progress: bool = True,
    job: Job | None = None,
) -> TuningResult:
    """Try settings on validation images; rows and models are kept in the folder `out`, and killed, it goes on there.

    `executor`, `workers` and `address` are those of `run_grid`; `job` is the training, where no file describes it.
    """
    job = job if tuning.train is None else read_job(tuning.train)
    check_tuning(tuning, job)
    runs_on = executors.executor(executor, tuning.threads, workers, address, tuning.device)
    checkpoint_of = _trainer(tuning, job, out, progress)
    failures: Failures = []
    with Store(Path(out) / "trials.sqlite") as store:

        def results(trials: Sequence[Trial]) -> list[TrialResult]:
            cells = cells_of_trials(trials)
            failures.extend(run_cells(cells, store, runs_on, predictions=True, progress=progress).failures)
            return ranked(trials, store)

        tried, confirmed = results(planned(tuning, checkpoint_of)), []
        if tuning.confirm:
            best = [result.trial.settings for result in tried[: tuning.confirm]]
            fresh = planned(tuning, checkpoint_of, fresh=True)
            confirmed = results([trial for trial in fresh if trial.settings in best])
    return TuningResult(tried, confirmed, failures)


def trials_json(results: Sequence[TrialResult]) -> list[dict[str, Any]]:
    """Trials as JSON values, in their order."""
    return [
        {
            "settings": result.trial.settings,
            "checkpoint": result.trial.checkpoint,
            "accuracy": result.accuracy,
            "gain": result.gain.as_json(),
        }
        for result in results
    ]


def write_trials(tuning: Tuning, result: TuningResult, path: str | Path) -> None:
    """Trials as CSV, the best first and those on fresh images last, each with the machine that measured it."""
    names = [*tuning.trained, *tuning.tied, *tuning.adapted]
    where = {"protocol": tuning.protocol, "images": tuning.images, "seed": tuning.seed, **origin()}
    lines = [
        [
            *(one.trial.settings.get(name, "") for name in names),
            on,
            one.accuracy,
            *one.gain.as_json().values(),
            *where.values(),
        ]
        for on, results in (("tuning", result.trials), ("fresh", result.confirmed))
        for one in results
    ]
    write_csv(path, [*names, "on", "accuracy", "gain", "low", "high", *where], lines)


def _trainer(tuning: Tuning, job: Job | None, out: str | Path, progress: bool) -> Callable[[Settings], str]:
    """What gives the checkpoint for the settings of a training: the given one, or one that is trained once."""

    @cache
    def trained(settings: str) -> str:
        if job is None:
            assert tuning.checkpoint is not None
            return tuning.checkpoint
        if progress:
            print(f"model with {settings}", file=sys.stderr, flush=True)
        chosen = json.loads(settings) | {"data": tuning.data, "root": tuning.root}
        return train_once(changed(job, chosen), out, tuning.device, None if progress else [])

    return lambda settings: trained(json.dumps(settings))


def changed(job: Job, settings: dict[str, Any]) -> Job:
    """The same training with other settings, which are named as on the command line.

    >>> changed(Job(data="digits"), {"layer": "layer2", "method_settings.views": 2, "recipe.epochs": 3}).layer
    'layer2'
    """
    for name, value in settings.items():
        group, dot, key = name.partition(".")
        if dot and group in GROUPS:
            own = getattr(job, group)
            value = own.but(**{key: value}) if isinstance(own, Recipe) else own | {key: value}
        elif dot or group in GROUPS or group not in {field.name for field in fields(Job)}:
            known = [field.name for field in fields(Job)] + [f"{group}.…" for group in GROUPS]
            raise InputError(f"a training has no setting {name!r}{nearest(name, known)}")
        job = replace(job, **{group: value})
    return job


def train_once(job: Job, folder: str | Path, device: str = "cpu", observers: list[Observer] | None = None) -> str:
    """Train, go on, or find what was trained before; returns the checkpoint. No test image is looked at."""
    job = replace(job, test=None)
    run = run_of(job, folder)
    if not (run / "results.json").is_file():
        run_job(job, run, resume=True, device=device, observers=observers)
    return str(run / "last")


def run_of(job: Job, folder: str | Path) -> Path:
    """Where below `folder` a training is done, so that the same one is found again."""
    described = json.dumps(_facts(job), sort_keys=True, default=str)
    return Path(folder) / hashlib.sha256(described.encode()).hexdigest()[:12]


def _facts(job: Job) -> dict[str, Any]:
    """What tells trainings apart; settings that came later count where they are not as everything was before."""
    facts = {field.name: getattr(job, field.name) for field in fields(job) if field.name != "root"}
    recipe = job.recipe.settings()
    if job.resize == SQUARE:
        del facts["resize"]
    if not job.recipe.fast:
        del recipe["fast"]
    return facts | {"recipe": recipe, "start_weights": start_digest(job.start)}
