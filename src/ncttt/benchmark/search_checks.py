"""What a search may look at, checked before anything is trained."""

from __future__ import annotations

import json
from dataclasses import fields

from ncttt.benchmark.cells import corruption_names, pictures_of
from ncttt.benchmark.grid_checks import check_least, check_protocol, check_severity
from ncttt.benchmark.tuning import grid_of
from ncttt.checkpoint import checkpoint_folder, description
from ncttt.data.corruptions import CORRUPTIONS
from ncttt.data.corruptions.constants import table_for
from ncttt.errors import InputError, nearest
from ncttt.grid import Entry
from ncttt.methods import METHODS
from ncttt.search import Search
from ncttt.training.job import Job


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
    for name in ("split", "held_out", "test", "data"):
        if name in search.trained:
            raise InputError(f"{name} of a training cannot be searched for")
    split = job.split if job else _trained_on(str(search.checkpoint))
    if split not in (None, "fit"):
        raise InputError(
            f"the model learns from the split {split!r}, which holds the images of 'val'; train it on 'fit'"
        )


def _trained_on(checkpoint: str) -> str | None:
    """The split that a checkpoint's training has recorded, if it lies with its training."""
    own = checkpoint_folder(checkpoint)
    for place in (own, own.parent):
        if (place / "config.json").is_file():
            return json.loads((place / "config.json").read_text()).get("about", {}).get("split")
    return None


def _check_method(search: Search, job: Job | None) -> None:
    name = search.method or (job.method if job else description(str(search.checkpoint))["method"]["name"])
    if name not in METHODS:
        raise InputError(f"no method {name!r}{nearest(name, METHODS)}")
    known = [field.name for field in fields(METHODS[name])] + ["stop"]
    for setting in search.adapted:
        if setting not in known:
            raise InputError(f"method {name!r} has no setting {setting!r}{nearest(setting, known)}")
        if setting in METHODS[name].branch_settings:
            raise InputError(
                f"{setting} is settled by the training; search for it as trained: method_settings.{setting}"
            )


def _check_images(search: Search) -> None:
    check_severity(search.severity)
    check_protocol(search.protocol)
    check_least("batch_size", search.batch_size, 1)
    check_least("threads", search.threads, 1)
    corruption_names(search.corruptions)
    still = Entry(method="ptbn", checkpoint="")
    for fresh in (False, True) if search.confirm else (False,):
        drawn = pictures_of(grid_of(search, still, fresh)).draw()
        table_for(drawn.images.shape[1], drawn.images.shape[2], search.constants)
