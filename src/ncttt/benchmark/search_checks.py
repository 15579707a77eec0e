"""What a search may look at, checked before anything is trained."""

from __future__ import annotations

import json
from pathlib import Path

from ncttt.base.errors import InputError, nearest
from ncttt.benchmark.cells import check_stop, corruption_names, pictures_of
from ncttt.benchmark.grid import Entry
from ncttt.benchmark.grid_checks import check_grid, check_least
from ncttt.benchmark.search import Search
from ncttt.benchmark.tuning import combinations, grid_of
from ncttt.data.corruptions import CORRUPTIONS, table_for
from ncttt.methods import METHODS
from ncttt.methods.settings import method_from
from ncttt.training.job import Job
from ncttt.zoo.checkpoint import checkpoint_folder, description


def check_search(search: Search, job: Job | None) -> None:
    """Raise an `InputError`, before anything is trained, for what cannot work or would look at test images."""
    if search.split != "val":
        raise InputError(
            f"settings are chosen on the split 'val', held out of the training images; found {search.split!r}"
        )
    tested = [name for name in search.corruptions if name in (*CORRUPTIONS, "all")]
    if tested:
        raise InputError(f"{tested[0]!r} is for testing; settings are chosen on the four extra corruptions")
    if (search.train is None) == (search.checkpoint is None):
        raise InputError(
            "a search needs either train, a training's configuration, or checkpoint; not both, not neither"
        )
    if search.trained and search.train is None:
        raise InputError(f"{next(iter(search.trained))!r} needs a training; give train, a training's configuration")
    for name, values in {**search.trained, **search.adapted}.items():
        if not isinstance(values, list) or not values:
            raise InputError(f"{name} needs a list of values to try; found {values!r}")
    if search.random is not None:
        check_least("random", search.random, 1)
    _check_split(search, job)
    _check_method(search, job)
    _check_images(search)


def _check_split(search: Search, job: Job | None) -> None:
    """The validation images must not have been learned from."""
    for name in ("split", "held_out", "test", "data", "root", "start"):
        if name in search.trained:
            raise InputError(f"{name} of a training cannot be searched for")
    places = [job.start if job else search.checkpoint]
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
    beside = [place / "config.json" for place in (own, own.parent) if (place / "config.json").is_file()]
    try:
        return json.loads(beside[0].read_text())["about"]["split"]
    except (IndexError, OSError, ValueError, KeyError, TypeError):  # made elsewhere: nothing is recorded
        return None


def _check_method(search: Search, job: Job | None) -> None:
    """Every combination of settings makes a method."""
    own = {"name": job.method, **job.method_settings} if job else description(str(search.checkpoint))["method"]
    name = search.method or own["name"]
    if name not in METHODS:
        raise InputError(f"no method {name!r}{nearest(name, METHODS)}")
    kind = METHODS[name]
    if kind.has_branch and own["name"] != name:
        raise InputError(f"{name} needs a model trained for it; this one is for {own['name']}")
    for setting, values in search.adapted.items():
        if setting in kind.branch_settings:
            raise InputError(
                f"{setting} is settled by the training; search for it as trained: method_settings.{setting}"
            )
        if setting == "stop":
            for value in values:
                check_stop(value, kind)
        if setting == "steps" and not kind.learns:
            raise InputError(f"{name} takes no steps, so they cannot be searched for")
    base = own if kind.has_branch else {"name": name}
    for _, adapted in combinations(search):
        method_from(base, **{key: value for key, value in adapted.items() if key != "stop"})


def _check_images(search: Search) -> None:
    check_least("confirm", search.confirm, 0)
    corruption_names(search.corruptions)
    steps = search.adapted.get("steps")
    still = Entry(method="ptbn", checkpoint="", steps=None if steps is None else sorted(steps))
    check_grid(grid_of(search, still, fresh=False))
    for fresh in (False, True) if search.confirm else (False,):
        drawn = pictures_of(grid_of(search, still, fresh))[0].draw()
        table_for(drawn.images.shape[1], drawn.images.shape[2], search.constants)
