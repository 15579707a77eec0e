"""A whole training, from names to a scored model in a run folder: what `ncttt train` does."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any
from warnings import warn

import torch

from ncttt import models
from ncttt.base.devices import available, use_threads
from ncttt.base.files import replace_file
from ncttt.base.seeding import seeded
from ncttt.data import ImageSet, batches, load
from ncttt.data.files.resizing import exact
from ncttt.methods.settings import method_from
from ncttt.model.branched import Branched, attach
from ncttt.model.last_stage import AUTO
from ncttt.training.epoch import held_out_metrics
from ncttt.training.given import given_set
from ncttt.training.job import Job
from ncttt.training.loop import train
from ncttt.training.processes import place, process_group
from ncttt.training.run import Run
from ncttt.training.start import start_digest, warm_start, whiten_stem
from ncttt.training.watching import Display, Observer, TensorBoard

IMAGES_TO_WHITEN, WHITENED_AT_A_TIME = 2000, 100
RECORDED = (
    "start",
    "whiten",
    "split",
    "held_out",
    "test",
    "image_size",
    "resize",
    "train_size",
)  # with the run's configuration


def run_job(
    job: Job,
    out: str | Path,
    *,
    resume: bool = False,
    device: str = "cpu",
    threads: int | None = None,
    tensorboard: bool = False,
    observers: Sequence[Observer] | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Train in the folder `out`, then score on the test split, which nothing has looked at until then.

    Returns the results, which are in `out/results.json`, too. Of the processes that torchrun starts, which train
    together, the first one alone has them. `say` is told whether there was something to resume, which layer `auto`
    is, and how to go on after a signal; `observers` replace the progress display.
    """
    use_threads(threads)
    with process_group(device) as device:
        first = place().first
        if first and resume and not Run(out).begun:
            say(f"nothing to resume in {out}; beginning")
        watching: list[Observer] = [Display()] if observers is None else list(observers)
        if tensorboard and first:
            watching.append(TensorBoard(out))
        try:
            results = _train_and_score(job, Path(out), resume, device, watching, say)
        except (SystemExit, KeyboardInterrupt):
            if first and Run(out).begun:
                say("stopped; go on with --resume")
            raise
        return results if first else {}


def _train_and_score(
    job: Job, out: Path, resume: bool, device: str, observers: list[Observer], say: Callable[[str], None]
) -> dict[str, Any]:
    fit = load_split(job, job.split)
    held_out = None if job.held_out is None else load_split(job, job.held_out)
    test = None if job.test is None else load_split(job, job.test)
    resumes = resume and Run(out).begun  # then the weights come from the run
    model = build_model(_without_start(job) if resumes else job, fit, device)
    if job.layer == AUTO and place().first:
        say(f"layer auto is {model.layer}")
    for images in (fit, test):
        if images is not None:
            given_set(model, images)
    about = {name: getattr(job, name) for name in RECORDED}
    if job.network_settings.get("pretrained"):
        about["pretrained"] = True
    if digest := start_digest(job.start):  # a training that is resumed may have lost its start, and needs it no more
        about["start_weights"] = digest
    history = train(model, fit, job.recipe, held_out=held_out, run=out, resume=resume, observers=observers, about=about)
    results: dict[str, Any] = {
        "epochs": len(history),
        "minutes": round(sum(epoch.seconds for epoch in history) / 60, 2),
        "held_out": history[-1].held_out,
    }
    if place().first:
        if test is not None:
            results["test_accuracy"] = held_out_metrics(model, test, job.recipe.batch_size, workers=job.recipe.workers)[
                "accuracy"
            ]
        replace_file(out / "results.json", (json.dumps(results, indent=2) + "\n").encode())
    return results


def _without_start(job: Job) -> Job:
    """The same training with random weights, which those of a run are about to replace."""
    settings = {name: value for name, value in job.network_settings.items() if name != "pretrained"}
    return replace(job, start=None, whiten=False, network_settings=settings)


def load_split(job: Job, split: str) -> ImageSet:
    """One split of the data; photographs to learn from may be larger, because the augmentation cuts them.

    They are then of the same scale as the others: where those are cut out of a shorter side of 256 pixels, so are they.
    """
    size, resize = job.image_size, job.resize
    if split == job.split and job.train_size is not None:
        size, resize = job.train_size, exact(resize, size)
    return load(job.data, split, root=job.root, image_size=size, resize=resize)


def build_model(job: Job, data: ImageSet, device: str = "cpu") -> Branched:
    """The network with its branch, warm from `start` if there is one, channels last."""
    with seeded(job.recipe.seed):
        net = models.build(job.network, **{"num_classes": len(data.classes), **job.network_settings})
        if job.start is not None:
            fresh = warm_start(net, job.start)
            if fresh:
                warn(f"{job.start} has other classes: {', '.join(fresh)} begin anew", stacklevel=2)
        example = next(iter(batches(data, 2)))[0][..., : job.image_size, : job.image_size]
        method = method_from({"name": job.method, **job.method_settings})
        layer = job.layer if isinstance(job.layer, str) else tuple(job.layer)
        model = attach(net, layer, method, example, job.mean, job.std)
        if job.whiten:
            drawn = batches(data, WHITENED_AT_A_TIME, shuffle=True, seed=job.recipe.seed)
            some = islice(drawn, IMAGES_TO_WHITEN // WHITENED_AT_A_TIME)
            whiten_stem(model.classifier, ((images - model.mean) / model.std for images, _ in some))
    return model.to(available(device), memory_format=torch.channels_last)  # type: ignore[call-overload]
