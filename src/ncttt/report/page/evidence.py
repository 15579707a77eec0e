"""What only a store gives to a page: images, predictions batch by batch, and what is significant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ncttt.report.names import Column
from ncttt.report.page.verdicts import Verdict


@dataclass(frozen=True)
class Example:
    """One image as PNG, its class, what was predicted before and after adaptation, and the image without its shift."""

    png: bytes
    truth: str
    before: str
    after: str
    corruption: str
    method: str
    original: bytes | None = None

    @property
    def mended(self) -> bool:
        """Whether it is right after adaptation."""
        return self.after == self.truth


@dataclass(frozen=True)
class ShiftedImage:
    """An image as PNG under a corruption; that of clean images has severity 0."""

    png: bytes
    data: str
    corruption: str
    severity: int


@dataclass(frozen=True)
class Stream:
    """Accuracy in percent of one method along its stream, a mean over corruptions where each had a stream.

    `ends` are the numbers of the last batches that the points stand for, `parts` the corruptions of one long stream.
    """

    place: tuple[Any, ...]
    column: Column
    accuracy: tuple[float, ...]
    ends: tuple[int, ...]
    parts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Evidence:
    """All of it; a page of rows alone has none."""

    examples: Sequence[Example] = ()
    verdicts: Sequence[Verdict] = ()
    streams: Sequence[Stream] = ()
    shifts: Sequence[ShiftedImage] = ()
