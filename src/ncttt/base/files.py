"""Writing files that appear whole or not at all.

New content waits beside its place under a name that nobody can guess, in a file that was not there before, so that no
planted link is followed. It takes the mode of the file that it replaces. What is no regular file, a device or a pipe,
is never replaced: it is written to.
"""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO
from uuid import uuid4

from ncttt.base.errors import InputError
from ncttt.base.locks import locked_at_once


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file to fill, which takes the place of `path` once the `with` block ends well.

    A full disk, an error or a kill leaves the old file whole. Several processes may write the same path at a time: the
    last to end stays.
    """
    check_place(path)
    if is_special(path):
        with path.open("wb") as file:
            yield file
        return
    _sweep(path)
    part = path.with_name(f".{path.name}.{uuid4().hex}.new")
    try:
        with part.open("xb") as file:
            locked_at_once(file)  # tells others that it is not a leftover
            keep_mode(path, part)
            yield file
            sync(file)
            os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def replace_file(path: Path, content: bytes) -> None:
    """Write one file whole."""
    replace_files({path: content})


def replace_files(contents: Mapping[Path, bytes]) -> None:
    """Fill all new files first, then rename them one after another: a full disk leaves all old files whole.

    A kill between two renames leaves those of the later files waiting, where `waiting` finds them.
    """
    with ExitStack() as renames:  # the last that is entered is the first that is left
        for path in reversed(list(contents)):
            file = renames.enter_context(replacing(path))
            file.write(contents[path])
            sync(file)


def waiting(path: Path) -> list[Path]:
    """New contents of a file that a kill kept from taking its place."""
    return sorted(path.parent.glob(f".{glob.escape(path.name)}.*.new"))


def _sweep(path: Path) -> None:
    """Remove what killed writers of a file have left; who still writes holds a lock."""
    for part in waiting(path):
        with suppress(OSError), part.open("rb") as file:
            if locked_at_once(file):
                part.unlink()


def check_place(path: Path) -> None:
    """Raise an `InputError` where no file of that name can be."""
    if path.is_dir():
        raise InputError(f"cannot write {path}: it is a folder")
    if not path.parent.is_dir():
        raise InputError(f"cannot write {path}: {path.parent} is no folder")


def is_special(path: Path) -> bool:
    """Whether a device, a pipe or a socket is at `path`, or a link to one.

    >>> is_special(Path(os.devnull)), is_special(Path("no such file"))
    (True, False)
    """
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def keep_mode(old: Path, new: Path) -> None:
    """Give a new file the permissions of the one that it will replace."""
    with suppress(OSError):
        new.chmod(stat.S_IMODE(old.stat().st_mode))


def sync(file: IO[bytes]) -> None:
    """Wait until the disk has what was written; a pipe or a device has no disk."""
    file.flush()
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        os.fsync(file.fileno())


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
