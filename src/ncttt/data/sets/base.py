"""`DataSet`: what a data set says about itself in one class, and what the library makes of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ncttt.base.errors import InputError, nearest
from ncttt.data.files.checksums import mismatches
from ncttt.data.files.imageset import ImageSet
from ncttt.data.files.splits import held_out

VARIABLE = "NCTTT_DATA"
OK = "ok"
Findings = dict[str, str]


@dataclass(frozen=True)
class Download:
    """One file to fetch: address, published hash (`md5:...`; None when its home publishes none), and the part
    of the set it brings when it does not bring the whole."""

    url: str
    hash: str | None
    part: str = ""

    @property
    def file(self) -> str:
        return self.url.rsplit("/", 1)[1].partition("?")[0]


class DataSet:
    """A data set: a subclass gives the facts as class variables, and `read`.

    `splits` are the parts by name; if both "train" and "fit" are among them, "fit" and "val" are cut from "train", and
    `read` need not know them.
    """

    name: str
    place: float = float("inf")  # in listings; those without one come last
    title: str = ""
    classes: tuple[str, ...] = ()
    splits: tuple[str, ...] = ("test",)
    folder: str = ""  # below the root; none for a set that needs no files there
    downloads: tuple[Download, ...] = ()
    archive: bool = True  # whether the downloads are archives, rather than the files themselves
    hashes: Mapping[str, str] = {}  # of the files in the folder
    bytes: int | None = None  # to fetch
    second_source: str = ""  # the name of another source than `downloads`, if `fetch_elsewhere` has one
    constants: str | None = None  # of corruptions that shift its images visibly, where those for its size do not
    stores_corruptions: bool = False  # whether `read` gives corrupted images, and is told which

    def read(self, root: Path, split: str, **options: Any) -> ImageSet:
        """The images of an official split.

        Options are `image_size`, `resize` and `skip_bad`, of which files that are decoded take notice, or with
        `stores_corruptions` `corruption` and `severity`.
        """
        raise NotImplementedError(f"{type(self).__name__} has no `read`")

    def where(self, root: Path) -> Path:
        """The folder that its files are in, or will be."""
        return root / self.folder

    def present(self, root: Path) -> bool:
        """Whether its files are there; `check` looks into them."""
        parts = self.hashes or [item.part for item in self.downloads] or [""]
        return not self.folder or all((self.where(root) / part).exists() for part in parts)

    def unfinished(self, root: Path) -> bool:
        """Whether the files are the beginning of a set that is being made."""
        return False

    def check(self, root: Path) -> Findings:
        """What was looked at and how it is: "ok", or what is wrong with it."""
        self.require(root)
        return dict.fromkeys(self.hashes, OK) | mismatches(self.where(root), self.hashes)

    def fetch_elsewhere(self, scratch: Path, folder: Path) -> None:
        """Get the files from the second source into `folder`; `scratch` is for what is needed on the way."""
        raise NotImplementedError(f"{self.name} has no second source")

    def load(self, root: Path, split: str, **options: Any) -> ImageSet:
        """The images of any split; an `InputError` if there is no such split, or no such folder."""
        if split not in self.splits:
            raise InputError(f"{self.name} has no split {split!r}{nearest(split, self.splits)}")
        self.require(root)
        if split not in ("fit", "val") or "fit" not in self.splits:
            return self.read(root, split, **options)
        return held_out(self.read(root, "train", **options), split)

    def require(self, root: Path) -> None:
        """Raise an `InputError` that says how to get the set, unless its folder is there, if it has one."""
        if self.folder and not self.where(root).is_dir():
            raise InputError(f"{self.name} is not in {root}; {self.advice(root)}")

    def advice(self, root: Path) -> str:
        """How to get the set."""
        return f"fetch it with `ncttt data get {self.name}`" if self.downloads else f"put it into {self.where(root)}"


def data_root(root: str | Path | None = None) -> Path:
    """The folder that holds the data sets, which need not exist yet: as given, else `$NCTTT_DATA`, else a cache folder.

    >>> data_root("sets").name
    'sets'
    """
    chosen = root or os.environ.get(VARIABLE)
    if chosen:
        folder = Path(chosen).expanduser()
        if folder.exists() and not folder.is_dir():
            raise InputError(f"data sets lie in a folder; found a file at {folder}")
        return folder
    import pooch  # a third of a second, for those who named no folder

    return Path(pooch.os_cache("ncttt"))
