"""Writing so that nothing half done is ever taken for the real thing: fill a folder aside, then rename it."""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PREFIX = ".unfinished-"
STALE_SECONDS = 24 * 3600


@contextmanager
def scratch(root: Path) -> Iterator[Path]:
    """A temporary folder on the same disk as `root`, so that a rename out of it is atomic; removed at the end."""
    root.mkdir(parents=True, exist_ok=True)
    _sweep(root)
    with tempfile.TemporaryDirectory(prefix=PREFIX, dir=root) as folder:
        yield Path(folder)


def _sweep(root: Path) -> None:
    # A run that was killed could not remove its folder; a day later nobody can be writing there.
    for left in root.glob(f"{PREFIX}*"):
        if time.time() - left.stat().st_mtime > STALE_SECONDS:
            shutil.rmtree(left, ignore_errors=True)


def put_in_place(finished: Path, target: Path) -> None:
    """Rename the folder `finished` to `target`; if there is one, only its files of the same names are replaced."""
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        finished.rename(target)
        return
    # What else the user keeps there stays, and an error on the way loses nothing.
    for file in sorted(path for path in finished.rglob("*") if path.is_file()):
        place = target / file.relative_to(finished)
        place.parent.mkdir(parents=True, exist_ok=True)
        os.replace(file, place)


@contextmanager
def name_the_file(path: Path) -> Iterator[None]:
    """Add the file's name to an error of the disk, which else says only "no space left on device"."""
    try:
        yield
    except OSError as error:
        # Errors of `requests` are OSErrors without a number; they are none of ours.
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error
