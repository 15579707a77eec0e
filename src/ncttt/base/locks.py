"""Locks between the processes of a machine, which end with the process that holds them.

Where the system has none (Windows, some network file systems) everything goes on without: what is written allows that
work is done twice.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import IO

from ncttt.base.errors import InputError

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None


def locked_at_once(file: IO) -> bool | None:
    """Take the lock of an open file, until that is closed.

    False means that another process has it, None that there are no locks here.
    """
    if fcntl is None:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Only one process of this machine is inside at a time."""
    with path.open("w") as file:
        if fcntl is not None:
            with suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def alone_with(output: Path) -> Iterator[int]:
    """Keep an output, a file or a folder, to this run; an `InputError` names the run that has it already.

    What it gives is the file descriptor of the lock, which a process that writes there, too, must inherit.

    >>> import tempfile
    >>> with alone_with(Path(tempfile.mkdtemp()) / "rows.csv"):
    ...     print("nobody else writes this")
    nobody else writes this
    """
    output = output.resolve()
    if not output.name:
        raise InputError(f"cannot write {output}: nothing can lie beside the top folder of a disk; choose one in it")
    path = output.with_name(f".{output.name}.lock")
    with _held(path, output) as file:
        file.truncate(0)
        file.write(f"process {os.getpid()} ({_command()}, since {datetime.now():%Y-%m-%d %H:%M})")
        file.flush()
        try:
            yield file.fileno()
        finally:
            path.unlink(missing_ok=True)


def _held(path: Path, output: Path) -> IO[str]:
    """The lock file at `path`, open and locked; one that its last owner has removed meanwhile is no lock."""
    while True:
        try:  # a link that somebody has planted is not followed
            number = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o644)
        except OSError as error:
            raise InputError(f"cannot write {output}: {path.name} beside it: {error.strerror}") from None
        file = os.fdopen(number, "r+", encoding="utf-8", errors="backslashreplace")
        if locked_at_once(file) is False:
            with file:
                owner = file.read(300) or "another process"
            raise InputError(f"{output} is being written by {owner}; wait for it, or choose another output")
        with suppress(OSError):
            if os.path.samestat(os.fstat(number), path.lstat()):
                return file
        file.close()


def _command() -> str:
    """The program of this process, and its first argument: `ncttt train`."""
    return " ".join([Path(sys.argv[0]).name, *sys.argv[1:2]])
