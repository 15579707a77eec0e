"""The trainings of a plan as configuration files of `ncttt train`: to read, to change, to run under torchrun."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from ncttt.base.files import replace_file
from ncttt.paper.items import Item
from ncttt.paper.measuring import trainings_of
from ncttt.paper.plan import read_plan
from ncttt.paper.settings import Settings
from ncttt.paper.trainings import Training
from ncttt.training.job import Job

DEFAULT = Job(data="")


def write_configurations(items: Sequence[Item], settings: Settings, folder: str | Path) -> list[Path]:
    """A file for each training behind these tables and figures; each trains where `ncttt paper` looks for it."""
    written: dict[Path, Training] = {}
    for item in items:
        if item.plan is not None and item.figure != "layers":
            plan = read_plan(item.plan, settings.scale)
            own = [training for training in trainings_of(item, plan, settings) if not training.ships]
            written |= {Path(folder) / f"{plan.name}-{one.model}-seed{one.seed}.yaml": one for one in own}
    Path(folder).mkdir(parents=True, exist_ok=True)
    for path, training in written.items():
        replace_file(path, yaml.safe_dump(_content(training), sort_keys=False).encode())
    return list(written)


def _content(training: Training) -> dict[str, Any]:
    job = training.job
    own = {field.name: getattr(job, field.name) for field in dataclasses.fields(job)}
    described = {name: value for name, value in own.items() if value != getattr(DEFAULT, name) or name == "data"}
    return described | {"recipe": job.recipe.settings(), "out": str(training.folder)}
