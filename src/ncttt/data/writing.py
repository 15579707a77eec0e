"""Writing so that nothing half done is ever taken for the real thing: fill a folder aside, then rename it."""

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
    """Rename the folder `finished` to `target`; what stood there goes only when the new one is there."""
    target.parent.mkdir(parents=True, exist_ok=True)
    old = finished.with_name("replaced")
    if target.exists():
        target.rename(old)
    finished.rename(target)
    shutil.rmtree(old, ignore_errors=True)


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
