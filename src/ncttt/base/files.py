"""Writing files that appear whole or not at all, by one process at a time."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO
from uuid import uuid4

from ncttt.base.errors import InputError

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None


@contextmanager
def replacing(path: Path, *, own_name: bool = False) -> Iterator[IO[bytes]]:
    """A file to fill, which takes the place of `path` once the `with` block ends well.

    A full disk, an error or a kill leaves the old file whole. With `own_name` several processes may write the same path
    at a time: each fills a file that no other one knows, and the last to end stays.
    """
    check_place(path)
    part = path.with_name(f".{path.name}.{uuid4().hex}.new") if own_name else temporary(path)
    with _filling(part) as file:
        yield file
    os.replace(part, path)


def replace_file(path: Path, content: bytes) -> None:
    """Write one file whole."""
    replace_files({path: content})


def replace_files(contents: Mapping[Path, bytes]) -> None:
    """Fill all temporary files first, then rename them one after another: a full disk leaves all old files whole."""
    for path in contents:
        check_place(path)
    try:
        for path, content in contents.items():
            with _filling(temporary(path)) as file:
                file.write(content)
        for path in contents:
            os.replace(temporary(path), path)
    except BaseException:
        for path in contents:
            temporary(path).unlink(missing_ok=True)
        raise


def check_place(path: Path) -> None:
    """Raise an `InputError` where no file of that name can be."""
    if path.is_dir():
        raise InputError(f"cannot write {path}: it is a folder")
    if not path.parent.is_dir():
        raise InputError(f"cannot write {path}: {path.parent} is no folder")


@contextmanager
def _filling(part: Path) -> Iterator[IO[bytes]]:
    """A temporary file, on the disk when the `with` block ends, gone if it fails."""
    try:
        with part.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def temporary(path: Path) -> Path:
    """Where the new content of a file waits to take its place."""
    return path.with_name(f".{path.name}.new")


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Only one process of this machine is inside at a time, where the system has such locks.

    A lock ends with the process that held it. Without one, work may be done twice: what is written must allow that.
    """
    with path.open("w") as file:
        if fcntl is not None:
            with suppress(OSError):  # some network file systems have no locks
                fcntl.flock(file, fcntl.LOCK_EX)
        yield


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
