"""Unpack tar and zip archives without trusting them, in a folder aside that is renamed when all is well.

Only regular files below the target are written, no more of them than an archive of that size may sensibly hold, and
nothing half done is ever taken for the real thing.
"""

from __future__ import annotations

import gzip
import os
import shutil
import stat
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO

from ncttt.base.errors import InputError
from ncttt.base.files import name_the_file

PREFIX = ".unfinished-"
STALE_SECONDS = 24 * 3600
RATIO = 20  # how much larger than the archive its files may be in all; images are hardly packed at all
SLACK = 256 << 20  # bytes that any archive may unpack to, however small it is
BLOCK = 4096  # bytes that even an empty file or a folder counts for, as it does on a disk
LARGEST_HEADER = 1 << 20  # bytes of a name or of extended attributes, which tarfile reads into memory
PIECE = 1 << 20
DEEPEST = 50  # folders in folders; no set needs more, and Python's own recursion ends somewhere


def unpack(archive: Path, target: Path) -> None:
    """Write the files of `archive` below `target`; links, devices and paths that lead elsewhere are errors.

    Permissions, owners and times in the archive are ignored. Give a scratch folder as `target`: after an
    error some files may already be there.
    """
    members = _zip_members if zipfile.is_zipfile(archive) else _tar_members
    room = _Room(archive, target)
    try:
        for name, size, file in members(archive, room):
            _write(file, size, target / _inside(name, archive), room)
    except InputError:
        raise
    except Exception as error:  # truncated, encrypted, absurd headers: an archive can fail in any way
        if isinstance(error, OSError) and not isinstance(error, gzip.BadGzipFile):
            raise  # the disk's fault, not the archive's
        what = "truncated or not an archive that can be read"
        raise InputError(f"{archive}: {what} ({error}); delete it and get it again") from error


def _tar_members(archive: Path, room: _Room) -> Iterator[tuple[str, int, IO[bytes]]]:
    with tarfile.open(archive, tarinfo=_Member) as tar:
        for member in tar:
            room.take(BLOCK)
            if member.isdir():
                _inside(member.name, archive)
                continue
            if not member.isfile():
                raise InputError(f"{archive}: {member.name!r} is a link or a device; refused")
            if member.issparse():
                raise InputError(f"{archive}: {member.name!r} is a sparse file; refused")
            file = tar.extractfile(member)
            assert file is not None  # only for members that are no files
            yield member.name, member.size, file


def _zip_members(archive: Path, room: _Room) -> Iterator[tuple[str, int, IO[bytes]]]:
    with zipfile.ZipFile(archive) as packed:
        for member in packed.infolist():
            room.take(BLOCK)
            mode = member.external_attr >> 16
            if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise InputError(f"{archive}: {member.filename!r} is a link or a device; refused")
            if member.is_dir():
                _inside(member.filename, archive)
                continue
            with packed.open(member) as file:
                yield member.filename, member.file_size, file


class _Member(tarfile.TarInfo):
    """A member whose headers are small enough to be read; maps of sparse files, which may be endless, are not."""

    def _proc_member(self, tar: tarfile.TarFile) -> tarfile.TarInfo:
        if self.type == tarfile.GNUTYPE_SPARSE:
            raise tarfile.ReadError("a sparse file")
        if self.type not in tarfile.REGULAR_TYPES and self.size > LARGEST_HEADER:
            raise tarfile.ReadError(f"a header of {self.size} bytes")
        return super()._proc_member(tar)  # type: ignore[misc]

    def _proc_gnusparse_10(self, *_: object) -> None:
        raise tarfile.ReadError("a sparse file")


class _Room:
    """How much may still be written: counted while it is, because what an archive says of itself proves nothing."""

    def __init__(self, archive: Path, target: Path) -> None:
        self._archive, packed = archive, archive.stat().st_size
        disk = next(place for place in (target, *target.absolute().parents) if place.exists())
        sensible, free = SLACK + RATIO * packed, shutil.disk_usage(disk).free
        self._left = min(sensible, free)
        self._limit = (
            f"the {_size(free)} that are free on the disk"
            if free < sensible
            else f"{_size(sensible)}, {RATIO} times its {_size(packed)} and {_size(SLACK)}, as no data set does"
        )

    def take(self, count: int) -> None:
        """Count bytes that are about to be written."""
        self._left -= count
        if self._left < 0:
            raise InputError(f"{self._archive}: it unpacks to more than {self._limit}; refused")


def _size(count: int) -> str:
    return f"{count / (1 << 20):,.1f} MiB"


def _inside(name: str, archive: Path) -> PurePosixPath:
    path, windows = PurePosixPath(name), PureWindowsPath(name)
    if path.is_absolute() or windows.drive or windows.root or ".." in path.parts + windows.parts:
        raise InputError(f"{archive}: {name!r} leads outside the target folder; refused")
    if "\0" in name or len(path.parts) > DEEPEST:
        raise InputError(f"{archive}: {name[:80]!r} is no sensible path; refused")
    return path


def _write(file: IO[bytes], size: int, path: Path, room: _Room) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # "x": a second member of the same name would replace what was already checked or written.
    with name_the_file(path), path.open("xb") as out:
        while piece := file.read(PIECE):
            room.take(len(piece))
            out.write(piece)
        written = out.tell()
    if written != size:
        raise EOFError(f"{path.name} has {written} of {size} bytes")


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
