"""Ownership of streams between processes that share a folder of states: one owner at a time, told by files.

The folder of a stream has one claim, `owner.N`, whose text names the owner, or nobody. A change of owner, also to
nobody, is the file of the next number: it is linked into place, which only one process can do, and then the former one
is removed, before anything of the stream is read. So whoever finds that its own claim still stands, after it has
written, knows that the next owner will see what it wrote; whoever finds it gone knows not to acknowledge it.
Clocks, locks and leases play no part: they would have to be trusted on every machine.

An owner that dies takes versions along that were answered but not saved. No version is further than `AHEAD` from one on
disk, or from the `floor` in the claim, so whoever takes a stream counts from beyond both, and no number, nor file, is
ever that of two states.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from ncttt.base.errors import InputError

NOBODY = "-"
AHEAD = 1000  # versions that may be answered before one of them must be on disk
OWNER = "owner."
WORDS = re.compile(r"(\S+) (\S+) (\d{1,18})")


class Owned(Exception):
    """Another process owns the stream; it must give it up first, or be gone."""

    def __init__(self, stream: str, owner: str):
        super().__init__(stream, owner)
        self.stream, self.owner = stream, owner


class Lost(Exception):
    """The stream was taken by another process; what was not acknowledged is for that one to do again."""


class Claim(NamedTuple):
    """A claim that stands: its number, and what is in it; its owner's versions lie above the floor."""

    number: int
    owner: str
    word: str
    floor: int

    @property
    def text(self) -> str:
        """What is in the file."""
        return f"{self.owner} {self.word} {self.floor}"


class Claims:
    """The claims of one process, by stream, in a folder that others share."""

    def __init__(self, folder: Path, owner: str):
        self._folder, self._owner = folder, owner
        self._held: dict[str, Claim] = {}

    def owner(self, stream: str) -> str:
        """Who owns a stream; `NOBODY` if nobody does."""
        return self._newest(stream).owner

    def holds(self, stream: str) -> bool:
        """Whether this process owns a stream."""
        held = self._held.get(stream)
        return held is not None and _text(self._place(stream, held.number)) == held.text

    def check(self, stream: str) -> None:
        """Raise `Lost` unless this process owns a stream."""
        if not self.holds(stream):
            raise Lost(f"stream {stream!r} was taken by another replica")

    def claim(self, stream: str, take_from: str = NOBODY, saved: int = 0) -> int | None:
        """Own a stream that nobody owns, or that is to be taken from its owner; `Owned` names any other.

        None says that the last owner had given it up, so that all of its state is on disk; a number, that this owner's
        versions must lie above it, and above the newest on disk by more than `AHEAD`. `saved` is the newest so far.
        """
        while True:
            newest = self._newest(stream)
            if newest.owner not in (NOBODY, take_from, self._owner):
                raise Owned(stream, newest.owner)
            floor = newest.floor if newest.owner == NOBODY else max(newest.floor, saved) + AHEAD
            mine = Claim(newest.number + 1, self._owner, uuid4().hex, floor)
            if self._succeed(stream, mine):
                self._held[stream] = mine
                return None if newest.owner == NOBODY else floor

    def release(self, stream: str) -> None:
        """Give up a stream, all of whose state is on disk."""
        if self.holds(stream):
            held = self._held[stream]
            self._succeed(stream, held._replace(number=held.number + 1, owner=NOBODY))
        self.forget(stream)

    def forget(self, stream: str) -> None:
        """Know no longer of a stream, which is lost or deleted."""
        self._held.pop(stream, None)

    def _succeed(self, stream: str, claim: Claim) -> bool:
        """Put a claim in the place of those before it; False if another process was faster."""
        path = self._place(stream, claim.number)
        path.parent.mkdir(exist_ok=True)
        part = path.with_name(f".{OWNER}{uuid4().hex}")
        with part.open("w") as file:
            file.write(claim.text)
            file.flush()
            os.fsync(file.fileno())  # else a claim may be empty after a loss of power
        try:
            os.link(part, path)
        except FileExistsError:
            return False
        except OSError as error:
            raise InputError(f"states of many machines need a folder with hard links: {error}") from None
        finally:
            part.unlink()
        for number in self._numbers(stream):
            if number < claim.number:
                self._place(stream, number).unlink(missing_ok=True)
        if self._newest(stream) == claim:
            return True
        path.unlink(missing_ok=True)  # it came late, with a number that was used up meanwhile
        return False

    def _newest(self, stream: str) -> Claim:
        while True:
            number = max(self._numbers(stream), default=0)
            if not number:
                return Claim(0, NOBODY, NOBODY, 0)
            text = _text(self._place(stream, number))
            if text is not None:
                found = WORDS.fullmatch(text)  # else it is damaged, and somebody's whom nobody knows
                return Claim(number, found[1], found[2], int(found[3])) if found else Claim(number, "?", "?", 0)

    def _numbers(self, stream: str) -> list[int]:
        numbers = (path.name.removeprefix(OWNER) for path in (self._folder / stream).glob(f"{OWNER}*"))
        return [int(number) for number in numbers if number.isdecimal()]

    def _place(self, stream: str, number: int) -> Path:
        return self._folder / stream / f"{OWNER}{number:08}"


def _text(path: Path) -> str | None:
    try:
        return path.read_text()
    except FileNotFoundError:
        return None
