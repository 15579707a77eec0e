"""`load`: any set by name and split, or a folder by its path, corrupted on the fly if asked."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ncttt.base.errors import InputError, nearest
from ncttt.data.corruptions.apply import check, corrupt
from ncttt.data.files.arrays import read_made
from ncttt.data.files.finding import subfolders
from ncttt.data.files.folders import IMAGE_SIZE, LIST, folder
from ncttt.data.files.imageset import Images, ImageSet, as_bytes
from ncttt.data.files.resizing import SQUARE, exact
from ncttt.data.files.splits import held_out
from ncttt.data.sets.base import data_root
from ncttt.data.sets.registry import data_set, is_folder


def load(
    name: str,
    split: str,
    root: str | Path | None = None,
    corruption: str | None = None,
    severity: int | None = None,
    *,
    seed: int = 0,
    image_size: int = IMAGE_SIZE,
    resize: str = SQUARE,
    skip_bad: bool = False,
) -> ImageSet:
    """Load a set by its name (`DATA_SETS`) or a folder by its path: images uint8 (N, H, W, 3), labels, classes.

    Splits: "train" is the whole official training part, "fit" and "val" its fixed 90 % and 10 %, "test" the test
    part; for a folder, "all" is the folder itself and another name a folder in it. `corruption` and
    `severity` choose a file of CIFAR-C, or corrupt another set on the fly with `seed`. `image_size`,
    `resize` ("square", "crop" or "crop(256)" and the like) and `skip_bad` matter to image files only.

    >>> data = load("digits", "test")
    >>> data.images.shape, data.classes[:3]
    ((500, 32, 32, 3), ('0', '1', '2'))
    """
    if (corruption is None) != (severity is None):
        raise InputError(f"corruption and severity go together, found {corruption!r} and {severity!r}")
    exact(resize, size=1)  # an unknown way is refused for every set, also where there is nothing to resize
    options: dict[str, Any] = {"image_size": image_size, "resize": resize, "skip_bad": skip_bad}
    if is_folder(name):
        data, corruption = _load_folder(Path(name), split, corruption, severity, options)
    else:
        chosen, where = data_set(name), data_root(root)
        if chosen.stores_corruptions:
            return chosen.load(where, split, corruption=corruption, severity=severity)
        data = chosen.load(where, split, **options)
    if corruption is None or severity is None:
        return data
    return corrupted(data, corruption, severity, seed)


def stores_corruptions(name: str) -> bool:
    """Whether a set, or a folder, holds corrupted images as arrays, which `corruption` and `severity` choose from.

    >>> stores_corruptions("cifar10-c"), stores_corruptions("cifar10")
    (True, False)
    """
    return _holds_arrays_only(Path(name)) if is_folder(name) else data_set(name).stores_corruptions


def corrupted(data: ImageSet, corruption: str, severity: int, seed: int = 0) -> ImageSet:
    """The same set under a corruption: arrays at once, files when they are decoded.

    >>> corrupted(load("digits", "test").subset([0, 1]), "contrast", 3).name
    'digits test contrast 3'
    """
    name = f"{data.name} {corruption} {severity}"
    if isinstance(data.images, np.ndarray):
        images = corrupt(data.images, corruption, severity, seed=seed)
    else:
        images = CorruptedImages(data.images, corruption, severity, seed)
    return replace(data, images=images, name=name)


class CorruptedImages:
    """Images under a corruption that depends on (seed, corruption, severity, index) only."""

    dtype = np.dtype(np.uint8)

    def __init__(
        self,
        images: Images,
        corruption: str,
        severity: int,
        seed: int,
        indices: np.ndarray | None = None,
        constants: str | None = None,
    ) -> None:
        check_request(images.shape, corruption, severity, seed)
        self.images, self.corruption, self.severity, self.seed = images, corruption, severity, seed
        self.constants = constants
        self.indices = np.arange(len(images)) if indices is None else indices

    @property
    def shape(self) -> tuple[int, ...]:
        return len(self.indices), *self.images.shape[1:]

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, indices: np.ndarray | slice | int) -> np.ndarray:
        chosen = self.indices[indices]
        some = np.atleast_1d(chosen)
        options = {"seed": self.seed, "indices": some, "constants": self.constants}
        made = corrupt(as_bytes(self.images[some]), self.corruption, self.severity, **options)
        return made if np.ndim(chosen) else made[0]

    def __array__(self, dtype: object = None, copy: bool | None = None) -> np.ndarray:
        return self[:]

    def select(self, indices: np.ndarray) -> "CorruptedImages":
        """The images at `indices`, corrupted as they would be in the whole set."""
        return CorruptedImages(
            self.images, self.corruption, self.severity, self.seed, self.indices[indices], self.constants
        )


def check_request(shape: tuple[int, ...], corruption: str, severity: int, seed: int) -> None:
    """Refuse a corruption of images (N, H, W, 3) that are not made yet as it would be refused when they are."""
    check(np.empty((0, *shape[1:]), np.uint8), corruption, severity, seed)


def _load_folder(
    path: Path, split: str, corruption: str | None, severity: int | None, options: dict[str, Any]
) -> tuple[ImageSet, str | None]:
    if not path.is_dir():
        raise InputError(f"there is no folder {path}")
    # Corruptions that lie ready are used: arrays made by `ncttt data corrupt`, or the layout of ImageNet-C,
    # <corruption>/<severity>/<class>/.
    if (path / f"{corruption}.npy").is_file() or _holds_arrays_only(path):
        return read_made(path, corruption, severity), None
    if corruption is not None and (ready := path / corruption / str(severity)).is_dir():
        return folder(ready, **options), None
    official = "train" if split in ("fit", "val") and not (path / split).is_dir() else split
    place = path if split == "all" else path / official
    if not place.is_dir():
        inside = ["all", *subfolders(path)]
        raise InputError(f"{path} has no split {official!r}{nearest(official, inside)}")
    data = folder(place, **options)
    return (held_out(data, split) if official != split else data), corruption


def _holds_arrays_only(path: Path) -> bool:
    return any(path.glob("*.npy")) and path.is_dir() and not subfolders(path) and not (path / LIST).is_file()
