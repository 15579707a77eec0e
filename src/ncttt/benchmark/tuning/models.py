"""The models of a tuning: a training's configuration with some settings changed, trained once each, resumable."""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from ncttt.base.errors import InputError, nearest
from ncttt.training.job import Job
from ncttt.training.launch import run_job
from ncttt.training.recipe import Recipe
from ncttt.training.warm import start_digest
from ncttt.training.watching import Observer

GROUPS = ("network_settings", "method_settings", "recipe")


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
    described = json.dumps(_facts(job), sort_keys=True, default=str)
    run = Path(folder) / hashlib.sha256(described.encode()).hexdigest()[:12]
    if not (run / "results.json").is_file():
        run_job(job, run, resume=True, device=device, observers=observers)
    return str(run / "last")


def _facts(job: Job) -> dict[str, Any]:
    facts = {field.name: getattr(job, field.name) for field in fields(job) if field.name != "root"}
    return facts | {"recipe": job.recipe.settings(), "start_weights": start_digest(job.start)}
