"""DATA_SETS: every data set by name, those of other packages and of the user's own files included."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from ncttt.base.declarations import declarations
from ncttt.base.errors import InputError
from ncttt.base.registry import Registry, load_address
from ncttt.data.files.imageset import ImageSet
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
    is_class = isinstance(thing, type)
    if issubclass(thing, DataSet) if is_class else callable(thing) or (hasattr(thing, "__getitem__")):
        return
    raise InputError(
        f"{name!r} is no data set: expected a subclass of ncttt.data.DataSet, an ImageSet, a Dataset of PyTorch, or a "
        f"function of a split's name that gives one; found {thing!r}"
    )


DATA_SETS: Registry[Any] = Registry("data set", "ncttt.data_sets", _built_in, _check)


def data_set(name: str) -> DataSet:
    """The data set of that name, or at that address: `module:Class`, or `module:object` for images that are there.

    >>> data_set("cifar10").folder
    'cifar-10-batches-bin'
    """
    found = DATA_SETS.find(name)
    chosen = found() if isinstance(found, type) else GivenSet(found)
    chosen.name = name  # messages and tables call it as it was asked for
    return chosen


class GivenSet(DataSet):
    """An object at an address, which is every split, or a function that gives the images of a split."""

    def __init__(self, thing: Any):
        self.thing = thing

    def load(self, root: Path, split: str, **options: Any) -> ImageSet:
        from ncttt.data.torch_data import as_image_set  # needs torch, and a list of sets does without

        return as_image_set(self.thing(split) if callable(self.thing) else self.thing)


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
