"""What a tuning may look at, checked before anything is trained."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from ncttt.base.errors import InputError
from ncttt.benchmark.cells import check_stop, image_draws
from ncttt.benchmark.grid import Entry
from ncttt.benchmark.grid_checks import check_grid, check_least, sizes_of_batches
from ncttt.benchmark.stream_checks import check_long_enough
from ncttt.benchmark.tuning.config import Tuning
from ncttt.benchmark.tuning.trials import combinations, factor_and_name, grid_of
from ncttt.data.corruptions import CORRUPTIONS, expand_corruptions, table_for
from ncttt.methods import METHODS, Method
from ncttt.methods.registry import name_of
from ncttt.methods.settings import method_from
from ncttt.training.job import Job
from ncttt.zoo.stored import checkpoint_folder, trained_method


def check_tuning(tuning: Tuning, job: Job | None) -> None:
    """Raise an `InputError`, before anything is trained, for what cannot work or would look at test images."""
    if tuning.split != "val" and not tuning.exception:
        raise InputError(
            f"settings are chosen on the split 'val', held out of the training images; found {tuning.split!r}"
        )
    if tuning.exception and tuning.confirm:
        raise InputError("trials of an exception choose nothing, so that there is nothing to confirm; leave it out")
    tested = [name for name in tuning.corruptions if name in (*CORRUPTIONS, "all")]
    if tested:
        raise InputError(f"{tested[0]!r} is for testing; settings are chosen on the four extra corruptions")
    if (job is None) == (tuning.checkpoint is None):
        raise InputError(
            "a tuning needs either train, a training's configuration, or checkpoint; not both, not neither"
        )
    if tuning.trained and job is None:
        raise InputError(f"{next(iter(tuning.trained))!r} needs a training; give train, a training's configuration")
    for name, values in {**tuning.trained, **tuning.adapted}.items():
        if not isinstance(values, list) or not values:
            raise InputError(f"{name} needs a list of values to try; found {values!r}")
    for name, rule in tuning.tied.items():
        if name in tuning.trained:
            raise InputError(f"{name} is tied to another setting and has values of its own; leave one out")
        factor_and_name(rule, tuning.trained)
    if tuning.random is not None:
        check_least("random", tuning.random, 1)
    if tuning.protocol == "mixed":
        raise InputError("'mixed' is no protocol but an order; write protocol: continual and order: mixed")
    _check_split(tuning, job)
    _check_images(tuning, job, _checked_methods(tuning, job))


def _check_split(tuning: Tuning, job: Job | None) -> None:
    """The validation images must not have been learned from."""
    for name in ("split", "held_out", "test", "data", "root", "start"):
        if name in tuning.trained:
            raise InputError(f"{name} of a training cannot be tuned")
    places = [job.start if job else tuning.checkpoint]
    for split in [job.split if job else None, *(_trained_on(place) for place in places if place)]:
        if split not in (None, "fit"):
            raise InputError(
                f"the model learns from the split {split!r}, which holds images of 'val'; train it on 'fit'"
            )


def _trained_on(checkpoint: str) -> str | None:
    """The split that a checkpoint's training has recorded, if it lies with its training."""
    if Path(checkpoint).is_file():
        return None
    own = checkpoint_folder(checkpoint)
    configs = [place / "config.json" for place in (own, own.parent) if (place / "config.json").is_file()]
    try:
        return json.loads(configs[0].read_text())["about"]["split"]
    except (IndexError, OSError, ValueError, KeyError, TypeError):  # made elsewhere: nothing is recorded
        return None


def _checked_methods(tuning: Tuning, job: Job | None) -> list[Method]:
    """The method of every combination of settings."""
    if tuning.method is not None:
        METHODS.find(tuning.method)  # first, because a checkpoint may be for this very method
    own = {"name": job.method, **job.method_settings} if job else trained_method(str(tuning.checkpoint))
    name = tuning.method or own["name"]
    kind = METHODS.find(name)
    if kind.needs_training() and own["name"] != name_of(kind):
        raise InputError(f"{name} needs a model trained for it; this one is for {own['name']}")
    for setting, values in tuning.adapted.items():
        if setting in kind.branch_settings:
            raise InputError(f"{setting} is settled by the training; tune it as trained: method_settings.{setting}")
        if setting == "stop":
            for value in values:
                check_stop(value, kind)
        if setting == "steps" and not kind.learns:
            raise InputError(f"{name} takes no steps, so they cannot be tuned")
    base = own if kind.needs_training() else {"name": name}
    chosen = ({key: value for key, value in adapted.items() if key != "stop"} for _, adapted in combinations(tuning))
    return [method_from(base, **settings) for settings in chosen]


def _check_images(tuning: Tuning, job: Job | None, methods: Iterable[Method]) -> None:
    check_least("confirm", tuning.confirm, 0)
    if tuning.confirm_images is not None:
        check_least("confirm_images", tuning.confirm_images, 1)
        if not tuning.confirm:
            raise InputError(f"confirm_images is {tuning.confirm_images} and confirm 0; say how many trials to confirm")
    domains = len(expand_corruptions(tuning.corruptions))
    steps = tuning.adapted.get("steps")
    still = Entry(method="ptbn", checkpoint=tuning.checkpoint or "", steps=None if steps is None else sorted(steps))
    check_grid(grid_of(tuning, still, fresh=False))
    for fresh in (False, True) if tuning.confirm else (False,):
        grid = grid_of(tuning, still, fresh)
        if job is not None:  # there is no checkpoint yet to ask for these
            grid = replace(grid, image_size=job.image_size, resize=tuning.resize or job.resize)
        drawn = image_draws(grid)[0].read()
        (size,) = sizes_of_batches(grid, len(drawn.labels), tuning.data)
        length = {"domains": domains, "images": len(drawn.labels), "batch_size": size}
        for method in methods:
            check_long_enough(method, tuning.protocol, tuning.order, **length)
        table_for(drawn.images.shape[1], drawn.images.shape[2], tuning.constants)
