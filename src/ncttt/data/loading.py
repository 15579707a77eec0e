"""`load`: any set by name and split, or a folder by its path, corrupted on the fly if asked."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from ncttt.base.errors import InputError, nearest
from ncttt.data import classes
from ncttt.data.arrays import cifar10_1, cifar_c, generated
from ncttt.data.cifar import cifar10, cifar100
from ncttt.data.digits import digits
from ncttt.data.folders import IMAGE_SIZE, folder, subfolders
from ncttt.data.imageset import ImageSet
from ncttt.data.lazy import CorruptedImages
from ncttt.data.roots import data_root
from ncttt.data.sources import SOURCES, source
from ncttt.data.splits import stratified

HELD_OUT = 0.1
PRECOMPUTED = {"cifar10-c": "cifar10", "cifar100-c": "cifar100"}


def load(
    name: str,
    split: str,
    root: str | Path | None = None,
    corruption: str | None = None,
    severity: int | None = None,
    *,
    seed: int = 0,
    image_size: int = IMAGE_SIZE,
    skip_bad: bool = False,
) -> ImageSet:
    """Load a set by its name (`SOURCES`) or a folder by its path: images uint8 (N, H, W, 3), labels, classes.

    Splits: "train" is the whole official training part, "fit" and "val" its fixed 90 % and 10 %, "test" the test
    part; for a folder, "all" is the folder itself and another name a folder in it. `corruption` and
    `severity` choose a file of CIFAR-C, or corrupt another set on the fly with `seed`. `image_size` and
    `skip_bad` matter to folders of image files only.

    >>> data = load("digits", "test")
    >>> data.images.shape, data.classes[:3]
    ((500, 32, 32, 3), ('0', '1', '2'))
    """
    if (corruption is None) != (severity is None):
        raise InputError(f"corruption and severity go together, found {corruption!r} and {severity!r}")
    where = data_root(root)
    if name in PRECOMPUTED:
        _check_split(name, split)
        return _corrupted_cifar(name, where, corruption, severity)
    if name not in SOURCES and (Path(name).is_dir() or len(Path(name).parts) > 1):
        data, corruption = _load_folder(Path(name), split, corruption, severity, image_size, skip_bad)
    else:
        _check_split(name, split)
        official = "train" if split in ("fit", "val") else split
        data = _held_out(_load_official(name, official, where, image_size, skip_bad), split)
    if corruption is None or severity is None:
        return data
    return corrupted(data, corruption, severity, seed)


def corrupted(data: ImageSet, corruption: str, severity: int, seed: int = 0) -> ImageSet:
    """The same set under a corruption: arrays at once, files when they are decoded.

    >>> corrupted(load("digits", "test").subset([0, 1]), "contrast", 3).name
    'digits test contrast 3'
    """
    from ncttt.data.corruptions import corrupt

    name = f"{data.name} {corruption} {severity}"
    if isinstance(data.images, np.ndarray):
        images = corrupt(data.images, corruption, severity, seed=seed)
    else:
        images = CorruptedImages(data.images, corruption, severity, seed)
    return replace(data, images=images, name=name)


def _check_split(name: str, split: str) -> None:
    splits = source(name).splits
    if split not in splits:
        raise InputError(f"{name} has no split {split!r}{nearest(split, splits)}")


def _load_official(name: str, split: str, root: Path, image_size: int, skip_bad: bool) -> ImageSet:
    if name != "digits":
        _require(name, root)
    readers: dict[str, Callable[[], ImageSet]] = {
        "digits": lambda: digits(split),
        "cifar10": lambda: cifar10(root, split),
        "cifar100": lambda: cifar100(root, split),
        "cifar10.1-v4": lambda: cifar10_1(root / "cifar-10.1", "v4", classes.CIFAR10),
        "cifar10.1-v6": lambda: cifar10_1(root / "cifar-10.1", "v6", classes.CIFAR10),
        "visda-c": lambda: folder(
            root / "visda-c" / split, image_size=image_size, classes=classes.VISDA, skip_bad=skip_bad
        ),
    }
    return readers[name]()


def _require(name: str, root: Path) -> None:
    places = [root / source(name).folder] + ([root / "cifar-10-batches-py"] if name == "cifar10" else [])
    if not any(place.is_dir() for place in places):
        raise InputError(f"{name} is not in {root}; fetch it with `ncttt data get {name}`")


def _corrupted_cifar(name: str, root: Path, corruption: str | None, severity: int | None) -> ImageSet:
    clean = PRECOMPUTED[name]
    place = root / source(name).folder
    if not place.is_dir():
        made = f"make it with `ncttt data corrupt {clean} --out {place}`"
        raise InputError(f"{name} is not in {root}; fetch it with `ncttt data get {name}` or {made}")
    names = classes.CIFAR10 if clean == "cifar10" else classes.CIFAR100
    return cifar_c(place, names, corruption, severity)


def _held_out(data: ImageSet, split: str) -> ImageSet:
    if split not in ("fit", "val"):
        return data
    fit, val = stratified(data.labels, round(len(data) * HELD_OUT))
    part = data.subset(fit if split == "fit" else val)
    return replace(part, name=f"{data.name.removesuffix(' train')} {split}")


def _load_folder(
    path: Path, split: str, corruption: str | None, severity: int | None, image_size: int, skip_bad: bool
) -> tuple[ImageSet, str | None]:
    if not path.is_dir():
        raise InputError(f"there is no folder {path}")
    # Corruptions that lie ready are used: arrays made by `ncttt data corrupt`, or the layout of ImageNet-C,
    # <corruption>/<severity>/<class>/.
    if (path / f"{corruption}.npy").is_file() or _holds_arrays_only(path):
        return generated(path, corruption, severity), None
    if corruption is not None and (ready := path / corruption / str(severity)).is_dir():
        return folder(ready, image_size=image_size, skip_bad=skip_bad), None
    official = "train" if split in ("fit", "val") and not (path / split).is_dir() else split
    place = path if split == "all" else path / official
    if not place.is_dir():
        inside = ["all", *subfolders(path)]
        raise InputError(f"{path} has no split {official!r}{nearest(official, inside)}")
    data = folder(place, image_size=image_size, skip_bad=skip_bad)
    return (_held_out(data, split) if official != split else data), corruption


def _holds_arrays_only(path: Path) -> bool:
    return (path / "labels.npy").is_file() and not subfolders(path)
