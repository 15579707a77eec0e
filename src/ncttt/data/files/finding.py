"""Image files found below folders, without what programs leave behind."""

import os
import warnings
from pathlib import Path

from ncttt.base.errors import InputError

EXTENSIONS = frozenset([".jpg", ".jpeg", ".png", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm"])


def subfolders(path: Path) -> list[str]:
    """The names of the folders in `path`, sorted, without those that programs leave behind."""
    return sorted(entry.name for entry in path.iterdir() if entry.is_dir() and _visible(entry.name))


def _visible(name: str) -> bool:
    # .ipynb_checkpoints, macOS's ._a.png and its __MACOSX are no classes and no images.
    return not name.startswith(".") and name != "__MACOSX"


def image_files(path: Path) -> list[str]:
    """The paths of the images below a folder, sorted.

    Pipes, sockets and devices with an image's name are left out, with a warning; a folder that cannot be listed is an
    error.
    """
    # Strings and directory entries, not Path objects: VisDA-C has 280,000 files.
    paths: list[str] = []
    odd: list[str] = []
    folders = [str(path)]
    while folders:
        for entry in _entries(folders.pop()):
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
            elif os.path.splitext(entry.name)[1].lower() in EXTENSIONS:
                (odd if _is_special(entry) else paths).append(entry.path)
    if odd:
        warnings.warn(f"left out {len(odd)} that are no regular files: {', '.join(sorted(odd)[:5])}", stacklevel=2)
    return sorted(paths)


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return [entry for entry in entries if _visible(entry.name)]
    except OSError as error:
        raise InputError(f"{folder} cannot be listed: {error.strerror}") from None


def _is_special(entry: os.DirEntry[str]) -> bool:
    """A pipe, a socket or a device; a broken link is told when it is read."""
    try:
        return not entry.is_file() and not entry.is_dir() and os.path.exists(entry.path)
    except OSError:  # a link that leads to itself
        return False
