"""Folders of image files: `<class>/<image>`, or a list `image_list.txt` with lines `path label`."""

import os
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ncttt.base.errors import InputError
from ncttt.base.words import counted
from ncttt.data.files.finding import image_files, subfolders
from ncttt.data.files.image_files import LazyImages
from ncttt.data.files.imageset import MOST_CLASSES, ImageSet
from ncttt.data.files.resizing import SQUARE, check_image_size, shorter_side

LIST = "image_list.txt"
IMAGE_SIZE = 224


def folder(
    path: str | Path,
    *,
    image_size: int = IMAGE_SIZE,
    resize: str = SQUARE,
    classes: Sequence[str] | None = None,
    skip_bad: bool = False,
) -> ImageSet:
    """The images below `path` with lazy decoding; by `image_list.txt` if there is one, else a class a folder.

    Images are brought to `image_size` pixels as `resize` says: "square", "crop" or "crop(256)" and the like, see
    `ncttt.data.files.resizing`. `skip_bad` decodes every file once, leaves out those that fail, and names them in a
    warning.

    >>> import tempfile
    >>> from PIL import Image
    >>> place = Path(tempfile.mkdtemp())
    >>> (place / "cat").mkdir()
    >>> Image.new("L", (40, 30)).save(place / "cat" / "tom.png")
    >>> folder(place, image_size=32).images.shape
    (1, 32, 32, 3)
    """
    path = Path(path)
    if not path.is_dir():
        raise InputError(f"{path} is no folder")
    check_image_size(image_size)
    shorter_side(resize, image_size)  # before the files are listed
    paths, labels, names = _listed(path, classes) if (path / LIST).is_file() else _by_class(path, classes)
    if not paths:
        loose = len(image_files(path))
        found = f"{counted(loose, 'image')} without labels" if loose else "no images"
        raise InputError(f"{path} holds {found}; expected <class>/<image> or {LIST} with lines `path label`")
    data = ImageSet(LazyImages(paths, image_size, resize), np.array(labels), tuple(names), name=str(path))
    return without_bad(data) if skip_bad else data


def without_bad(data: ImageSet) -> ImageSet:
    """The images that can be decoded; a warning names the others."""
    if not isinstance(data.images, LazyImages):
        return data
    bad = data.images.unreadable()
    if not bad:
        return data
    if len(bad) == len(data):
        raise InputError(f"{data.name}: none of the {len(bad)} images can be read; first: {bad[0]}")
    named = "; ".join(list(bad.values())[:5]) + ("; ..." if len(bad) > 5 else "")
    warnings.warn(f"left out {len(bad)} of {len(data)} images: {named}", stacklevel=3)
    return data.subset([i for i in range(len(data)) if i not in bad])


Listing = tuple[list[str], list[int], Sequence[str]]  # paths, their labels, the classes


def _by_class(path: Path, classes: Sequence[str] | None) -> Listing:
    names = classes or subfolders(path)
    paths, labels = [], []
    for label, name in enumerate(names):
        files = image_files(path / name)
        paths += files
        labels += [label] * len(files)
    return paths, labels, names


def _listed(path: Path, classes: Sequence[str] | None) -> Listing:
    paths, labels = [], []
    for number, line in enumerate(_lines(path / LIST), start=1):
        if not line.strip():
            continue
        file, _, label = line.strip().replace("\t", " ").rpartition(" ")
        if not file or not label.isdecimal():
            raise InputError(f"{path / LIST}, line {number}: expected `path label`, found {line!r}")
        # As float, because int refuses to read thousands of digits.
        if float(label) >= MOST_CLASSES:
            raise InputError(f"{path / LIST}, line {number}: label {label:.20} is not in 0..{MOST_CLASSES - 1}")
        paths.append(os.path.join(path, file.rstrip()))
        labels.append(int(label))
    return paths, labels, classes or _names_from_paths(paths, labels)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text ({error}); save it as such") from error


def _names_from_paths(paths: list[str], labels: list[int]) -> list[str]:
    # The folder of a class's first image is its name when every class has a folder of its own.
    first = {
        label: os.path.basename(os.path.dirname(file)) for file, label in zip(paths[::-1], labels[::-1], strict=True)
    }
    count = max(labels, default=-1) + 1
    names = [first.get(label, str(label)) for label in range(count)]
    return names if len(set(names)) == count else [str(label) for label in range(count)]
