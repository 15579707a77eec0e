"""DATA_SETS: every data set by name, those of other packages and of the user's own files included."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from ncttt.base.declarations import declarations
from ncttt.base.errors import InputError
from ncttt.base.registry import Registry, load_address
from ncttt.data.sets.base import DataSet, data_root


def _built_in() -> dict[str, Any]:
    listed = sorted(
        (values.get("place", DataSet.place), values["name"], f"{declared.module}:{kind}")
        for declared in declarations("ncttt.data.sets")
        for kind, values in declared.classes.items()
        if "name" in values
    )
    return {name: partial(load_address, address) for _, name, address in listed}


def _check(name: str, thing: Any) -> None:
    if not (isinstance(thing, type) and issubclass(thing, DataSet)):
        raise InputError(f"{name!r} is no data set: expected a subclass of ncttt.data.DataSet; found {thing!r}")


DATA_SETS: Registry[type[DataSet]] = Registry("data set", "ncttt.data_sets", _built_in, _check)


def data_set(name: str) -> DataSet:
    """The data set of that name, or at that address (`module:Class`).

    >>> data_set("cifar10").folder
    'cifar-10-batches-bin'
    """
    chosen = DATA_SETS.find(name)()
    chosen.name = name  # messages and tables call it as it was asked for
    return chosen


def is_folder(name: str) -> bool:
    """Whether a name means a folder of images, rather than a data set.

    >>> is_folder("digits"), is_folder("photos/test")
    (False, True)
    """
    return name not in list(DATA_SETS) and (Path(name).is_dir() or len(Path(name).parts) > 1)


def list_sets(root: str | Path | None = None) -> dict[str, dict[str, Any]]:
    """What there is to know about every set, by name, as plain values.

    >>> list_sets("nowhere")["digits"]["present"], list_sets("nowhere")["cifar10"]["present"]
    (True, False)
    """
    where = data_root(root)
    return {name: _facts(data_set(name), where) for name in DATA_SETS}


def _facts(chosen: DataSet, root: Path) -> dict[str, Any]:
    return {
        "present": chosen.present(root),
        "unfinished": chosen.unfinished(root),
        "splits": list(chosen.splits),
        "bytes": chosen.bytes,
        "title": chosen.title,
    }
