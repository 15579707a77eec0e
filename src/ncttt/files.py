"""Writing files that appear whole or not at all, by one process at a time."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None


def replace_file(path: Path, content: bytes) -> None:
    """Fill a temporary file beside `path`, then rename it: a full disk or a kill leaves the old file whole."""
    replace_files({path: content})


def replace_files(contents: Mapping[Path, bytes]) -> None:
    """Fill all temporary files first, then rename them one after another: a full disk leaves all old files whole."""
    filled = {path: temporary(path) for path in contents}
    try:
        for path, content in contents.items():
            with filled[path].open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        for path, new in filled.items():
            os.replace(new, path)
    except BaseException:
        for new in filled.values():
            new.unlink(missing_ok=True)
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
