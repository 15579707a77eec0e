"""A plan: how the networks of one data set are trained, at one scale, and the columns that are measured on them.

There is one file for each data set and scale in `plans/`. The scale `paper` has the settings of the paper, the scale
`small` has networks that two cores train or that ship; both go through the same code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from ncttt.base.errors import InputError, nearest
from ncttt.benchmark.grid import Entry, Grid
from ncttt.data.sets.base import data_root
from ncttt.data.sets.registry import data_set
from ncttt.training.job import Job, job_from
from ncttt.zoo.shipped import names as shipped_names

SCALES = ("small", "paper")


@dataclass(frozen=True, kw_only=True)
class Column:
    """A method on one of the plan's models, under the label that tables show."""

    method: str
    model: str
    label: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    steps: list[int] | None = None


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The networks and columns of one data set at one scale.

    `models` say what each training changes in `common`, a configuration of `ncttt train`; a `start` that is the name of
    another model begins with its weights. `shipped` are models of the zoo that need no training. `learned` and `tested`
    are how many images there are to train on and to test, for estimates. Where the corrupted images of `published` lie
    ready they are measured, else those of `data` are corrupted. `stands_for` is the data set of the paper whose numbers
    are shown beside, where `data` is another. `iterations` are the step counts of Figure 6 and the settings of NC-TTT
    there; `search` is what Figure 8 tries.
    """

    name: str
    scale: str
    data: str
    learned: int
    tested: int
    columns: list[Column]
    common: dict[str, Any]
    models: dict[str, dict[str, Any]]
    shipped: dict[str, str] = field(default_factory=dict)
    published: str | None = None
    stands_for: str | None = None
    split: str = "test"
    corruptions: list[str] = field(default_factory=lambda: ["all"])
    seeds: list[int] = field(default_factory=lambda: [0])
    batch_size: int = 128
    iterations: dict[str, Any] = field(default_factory=dict)
    search: dict[str, Any] = field(default_factory=dict)

    def trained(self, model: str) -> bool:
        """Whether a model has to be trained: it does not ship."""
        return self.shipped.get(model) not in shipped_names()

    def needed(self, models: list[str]) -> list[str]:
        """These models and those that they start from, the latter first; what ships needs no start."""
        ordered: list[str] = []
        for model in models:
            start = self.settings(model).get("start")
            before = self.needed([start]) if self.trained(model) and start in self.models else []
            ordered += [name for name in (*before, model) if name not in ordered]
        return ordered

    def settings(self, model: str) -> dict[str, Any]:
        """What the training of a model is configured with."""
        if model not in self.models:
            raise InputError(f"the plan {self.name} has no model {model!r}{nearest(model, self.models)}")
        return merged(self.common, self.models[model])

    def job(self, model: str, seed: int, home: Path, root: str | None = None) -> Job:
        """The training of a model with a seed; a start of this plan lies in its own folder below `home`."""
        settings = self.settings(model)
        start = settings.get("start")
        if start in self.models:
            settings["start"] = self.checkpoint(start, seed, home)
        recipe = {**settings.get("recipe", {}), "seed": seed}
        return job_from({**settings, "data": self.data, "root": root, "recipe": recipe}, f"{self.name}, {model}")

    def folder(self, model: str, seed: int, home: Path) -> Path:
        """Where a training runs."""
        return home / self.name / f"{model}-seed{seed}"

    def checkpoint(self, model: str, seed: int, home: Path) -> str:
        """The zoo's name of a model that ships, or the folder of a trained one."""
        return str(self.folder(model, seed, home) / "last") if self.trained(model) else self.shipped[model]

    def images(self, root: str | None) -> str:
        """The data set that is measured: the published corrupted images where they are, else the clean ones."""
        here = self.published is not None and data_set(self.published).present(data_root(root))
        return self.published if here and self.published else self.data

    def grid(self, columns: list[Column], severity: int | None, seed: int, home: Path, **options: Any) -> Grid:
        """The cells of columns with one seed, and of source and PTBN on every model, which tell gains apart."""
        entries = [self.entry(column, seed, home) for column in [*columns, *still_columns(columns)]]
        return Grid(
            data=self.images(options.get("root")),
            methods=entries,
            split=self.split,
            corruptions=self.corruptions,
            severities=[5 if severity is None else severity],
            batch_sizes=[self.batch_of(options.get("images"))],
            seeds=[seed],
            **options,
        )

    def batch_of(self, images: int | None) -> int:
        """The plan's batch size, or all images where somebody asks for fewer, to try things out."""
        return self.batch_size if images is None else min(self.batch_size, images)

    def entry(self, column: Column, seed: int, home: Path) -> Entry:
        """The entry of a grid for a column."""
        return Entry(
            method=column.method,
            checkpoint=self.checkpoint(column.model, seed, home),
            label=column.label or column.method,
            settings=column.settings,
            steps=column.steps,
        )


def still_columns(columns: Sequence[Column]) -> list[Column]:
    """Source and PTBN on the models of these columns, where they are not among them."""
    there = {(column.method, column.model) for column in columns if not column.settings}
    models = dict.fromkeys(column.model for column in columns)
    return [
        Column(method=method, model=model)
        for method in ("source", "ptbn")
        for model in models
        if (method, model) not in there
    ]


def read_plan(name: str, scale: str) -> Plan:
    """The plan of a data set at a scale.

    >>> read_plan("cifar10", "paper").settings("nc_ttt")["method_settings"]["channels"]
    96
    """
    if scale not in SCALES:
        raise InputError(f"no scale {scale!r}{nearest(scale, SCALES)}")
    text = (files("ncttt.paper") / "plans" / f"{name}-{scale}.yaml").read_text(encoding="utf-8")
    content = yaml.safe_load(text)
    columns = [Column(**column) for column in content.pop("columns")]
    return Plan(name=name, scale=scale, columns=columns, **content)


def merged(base: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with what `change` says instead, group by group.

    >>> merged({"recipe": {"epochs": 2, "lr": 0.1}}, {"recipe": {"epochs": 1}})
    {'recipe': {'epochs': 1, 'lr': 0.1}}
    """
    both = dict(base)
    for name, value in change.items():
        own = both.get(name)
        both[name] = merged(own, value) if isinstance(own, Mapping) and isinstance(value, Mapping) else value
    return both
