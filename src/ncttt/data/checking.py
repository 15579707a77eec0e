"""`check`: is what lies on disk what it should be? Hashes where they are published, shapes and counts elsewhere."""

from pathlib import Path

from ncttt.data.arrays import MAKING, check_made
from ncttt.data.folders import folder
from ncttt.data.image_files import LazyImages
from ncttt.data.sets.base import OK, Findings, data_root
from ncttt.data.sets.registry import DATA_SETS, data_set


def check(name: str, root: str | Path | None = None) -> Findings:
    """What was looked at and how it is: "ok", or what is wrong with it. Nothing is changed.

    `name` is that of a set, or the path of a folder: of images, each of which is decoded, or of corrupted arrays.

    >>> check("digits")
    {'train': 'ok', 'test': 'ok'}
    """
    place = Path(name)
    if name in list(DATA_SETS) or not place.is_dir():
        return data_set(name).check(data_root(root))
    return check_made(place) if (place / MAKING).is_file() else _check_folder(place)


def _check_folder(path: Path) -> Findings:
    data = folder(path)
    assert isinstance(data.images, LazyImages)
    bad = data.images.unreadable()
    return {f"{len(data) - len(bad)} images": OK} | {str(data.images.paths[i]): why for i, why in bad.items()}
