"""A whole training by names: data, network, layer, method and recipe; what a configuration file holds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import islice
from pathlib import Path
from typing import Any
from warnings import warn

import torch
from jsonargparse import ArgumentError, ArgumentParser

from ncttt import models
from ncttt.base.devices import available
from ncttt.base.errors import InputError
from ncttt.base.files import replace_file
from ncttt.base.seeding import seeded
from ncttt.data import ImageSet, batches, load
from ncttt.model.branched import Branched, attach
from ncttt.training.health import held_out_figures
from ncttt.training.loop import check_classes, train
from ncttt.training.processes import place
from ncttt.training.recipe import Recipe
from ncttt.training.run import Run
from ncttt.training.warm import start_digest, warm_start
from ncttt.training.watching import Observer
from ncttt.training.whitening import whiten_stem
from ncttt.zoo.checkpoint import method_from

IMAGES_TO_WHITEN, WHITENED_AT_A_TIME = 2000, 100
# What a configuration of `ncttt train` may say besides: where and how it runs.
RUNNING = ("out", "resume", "device", "threads", "tensorboard", "json")


@dataclass(frozen=True, kw_only=True)
class Job:
    """What to train on what; see `ncttt train --help`."""

    data: str
    root: str | None = None
    split: str = "fit"
    held_out: str | None = "val"
    test: str | None = "test"
    image_size: int = 224
    train_size: int | None = None
    mean: Sequence[float] | None = None
    std: Sequence[float] | None = None
    network: str = "small"
    network_settings: dict[str, Any] = field(default_factory=dict)
    start: str | None = None
    whiten: bool = False
    layer: str | Sequence[str] = "layer4"
    method: str = "nc_ttt"
    method_settings: dict[str, Any] = field(default_factory=dict)
    recipe: Recipe = field(default_factory=Recipe)

    def __post_init__(self) -> None:
        if self.whiten and self.start is not None:
            raise InputError(f"whiten is for a network that begins with random weights, not with start={self.start!r}")

    def load(self, split: str) -> ImageSet:
        """One split of the data; photographs to learn from may be larger, because the augmentation cuts them."""
        size = self.train_size if split == self.split and self.train_size is not None else self.image_size
        return load(self.data, split, root=self.root, image_size=size)

    def model(self, data: ImageSet, device: str = "cpu") -> Branched:
        """The network with its branch, warm from `start` if there is one, channels last."""
        with seeded(self.recipe.seed):
            net = models.build(self.network, **{"num_classes": len(data.classes), **self.network_settings})
            if self.start is not None:
                fresh = warm_start(net, self.start)
                if fresh:
                    warn(f"{self.start} has other classes: {', '.join(fresh)} begin anew", stacklevel=2)
            example = next(iter(batches(data, 2)))[0][..., : self.image_size, : self.image_size]
            method = method_from({"name": self.method, **self.method_settings})
            layer = self.layer if isinstance(self.layer, str) else tuple(self.layer)
            model = attach(net, layer, method, example, self.mean, self.std)
            if self.whiten:
                drawn = batches(data, WHITENED_AT_A_TIME, shuffle=True, seed=self.recipe.seed)
                some = islice(drawn, IMAGES_TO_WHITEN // WHITENED_AT_A_TIME)
                whiten_stem(model.classifier, ((images - model.mean) / model.std for images, _ in some))
        return model.to(available(device), memory_format=torch.channels_last)  # type: ignore[call-overload]


def run_job(
    job: Job, run: str | Path, *, resume: bool = False, device: str = "cpu", observers: Sequence[Observer] | None = None
) -> dict[str, Any]:
    """Train, then score on the test split, which nothing has looked at until then; returns and keeps the results."""
    fit = job.load(job.split)
    held_out = None if job.held_out is None else job.load(job.held_out)
    test = None if job.test is None else job.load(job.test)
    resumes = resume and Run(run).begun  # then the weights come from the run
    model = (replace(job, start=None, whiten=False) if resumes else job).model(fit, device)
    for images in (fit, test):
        check_classes(model, images)
    recorded = ("start", "whiten", "split", "held_out", "test", "image_size", "train_size")
    about = {name: getattr(job, name) for name in recorded}
    if digest := start_digest(job.start):  # a training that is resumed may have lost its start, and needs it no more
        about["start_weights"] = digest
    history = train(model, fit, job.recipe, held_out=held_out, run=run, resume=resume, observers=observers, about=about)
    results: dict[str, Any] = {
        "epochs": len(history),
        "minutes": round(sum(epoch.seconds for epoch in history) / 60, 2),
        "held_out": history[-1].held_out,
    }
    if place().first:
        if test is not None:
            results["test_accuracy"] = held_out_figures(model, test, job.recipe.batch_size)["accuracy"]
        replace_file(Path(run) / "results.json", (json.dumps(results, indent=2) + "\n").encode())
    return results


def read_job(path: str | Path) -> Job:
    """The training that a configuration file of `ncttt train` describes, wherever and however that is to run."""
    if not Path(path).is_file():
        raise InputError(f"there is no configuration {path}")
    parser = ArgumentParser(exit_on_error=False)
    parser.add_class_arguments(Job, as_group=False)
    for name in RUNNING:
        parser.add_argument(f"--{name}", type=Any)
    try:
        settings = parser.instantiate(parser.parse_path(str(path)))
        return Job(**{field.name: settings[field.name] for field in fields(Job)})
    except (ArgumentError, TypeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is no configuration of a training: {' '.join(str(error).split())}") from None
