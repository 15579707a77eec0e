"""`check`: is what lies on disk what it should be? Hashes where they are published, shapes and counts elsewhere."""

from pathlib import Path

from ncttt.base.errors import InputError
from ncttt.data.arrays import hashes_of, read_images, read_labels, severities_of
from ncttt.data.checksums import CIFAR10_PYTHON, mismatches
from ncttt.data.classes import VISDA
from ncttt.data.digits import digits
from ncttt.data.folders import IMAGE_SIZE, LIST, folder
from ncttt.data.lazy import LazyImages
from ncttt.data.roots import data_root
from ncttt.data.sources import MAKING, SOURCES, source, unfinished

VISDA_IMAGES = {"train": 152_397, "validation": 55_388, "test": 72_372}
Findings = dict[str, str]
OK = "ok"


def check(name: str, root: str | Path | None = None) -> Findings:
    """What was looked at and how it is: "ok", or what is wrong with it. Nothing is changed.

    >>> check("digits")
    {'train': 'ok', 'test': 'ok'}
    """
    if name not in SOURCES and Path(name).is_dir():
        return _check_generated(Path(name)) if (Path(name) / MAKING).is_file() else _check_folder(Path(name))
    facts, where = source(name), data_root(root)
    if name == "digits":
        return {split: OK if len(digits(split)) == count else "incomplete" for split, count in _DIGITS.items()}
    place, hashes = where / facts.folder, facts.hashes
    if name == "cifar10" and not place.is_dir() and (where / "cifar-10-batches-py").is_dir():
        place, hashes = where / "cifar-10-batches-py", CIFAR10_PYTHON
    if not place.is_dir():
        raise InputError(f"{name} is not in {where}; fetch it with `ncttt data get {name}`")
    if name == "visda-c":
        return {split: _check_visda(place / split, count) for split, count in VISDA_IMAGES.items()}
    if (place / MAKING).is_file():
        return _check_generated(place)
    return dict.fromkeys(hashes, OK) | mismatches(place, hashes)


_DIGITS = {"train": 1297, "test": 500}


def _check_generated(place: Path) -> Findings:
    # Its shapes must fit the published layout, and its files be what they were when they were finished.
    count, blocks = len(read_labels(place / "labels.npy")), len(severities_of(place))
    names = sorted(path.name for path in place.glob("*.npy") if path.stem != "labels")
    begun = dict.fromkeys(unfinished(place), "unfinished; run `ncttt data corrupt` again to go on")
    if not names and not begun:
        raise InputError(f"{place} holds no corruptions; run `ncttt data corrupt` again to make them")
    shapes = {name: _check_images(place / name, count, blocks) for name in names}
    changed = mismatches(place, hashes_of(place))
    return {"labels.npy": OK} | shapes | changed | begun


def _check_images(path: Path, count: int, blocks: int) -> str:
    try:
        images = read_images(path, shape=None)
    except InputError as error:
        return str(error)
    fits = len(images) == count and not count % blocks
    return OK if fits else f"{len(images)} images for {count} labels; expected {blocks} equal blocks"


def _check_visda(place: Path, expected: int) -> str:
    if not (place / LIST).is_file():
        return f"no {LIST}"
    try:
        data = folder(place, classes=VISDA)
    except InputError as error:
        return str(error)
    assert isinstance(data.images, LazyImages)
    absent = [path for path in data.images.paths if not Path(path).is_file()]
    if absent:
        return f"{len(absent)} listed files are missing, first {absent[0]}"
    return OK if len(data) == expected else f"{len(data)} images, published were {expected}"


def _check_folder(path: Path) -> Findings:
    data = folder(path, image_size=IMAGE_SIZE)
    assert isinstance(data.images, LazyImages)
    bad = data.images.unreadable()
    return {f"{len(data) - len(bad)} images": OK} | {str(data.images.paths[i]): why for i, why in bad.items()}
