"""The heap: batches of many sizes leave gaps in it that are free and yet in memory, and each new size more of them.

So what is free goes back to the system now and then, where the C library is one that can (glibc). Buffers of their own,
which would go back at once, take half as long again for a forward pass: each must be filled with zeros first.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable

AT_REST, AT_WORK = 1.0, 10.0  # seconds between a batch and giving back, if no other comes, and if others do


def trimming() -> Callable[[int], int] | None:
    """glibc's function that gives back what is free, if this is glibc."""
    return getattr(ctypes.CDLL(None), "malloc_trim", None)


class Heap:
    """Gives free memory back a while after batches, which costs tens of milliseconds.

    >>> given = []
    >>> heap = Heap(given.append)
    >>> heap.batch(10.0), heap.rest(10.5), given
    (None, None, [])
    >>> heap.rest(11.0), heap.rest(99.0), given
    (None, None, [0])
    """

    def __init__(self, trim: Callable[[int], object] | None):
        self._trim = trim
        self._first: float | None = None  # batch since memory was given back
        self._last = 0.0

    def batch(self, now: float | None = None) -> None:
        """A batch has been answered."""
        self._last = time.monotonic() if now is None else now
        self._first = self._last if self._first is None else self._first
        if self._last - self._first >= AT_WORK:
            self._give_back()

    def rest(self, now: float | None = None) -> None:
        """There was nothing to do for a moment."""
        now = time.monotonic() if now is None else now
        if self._first is not None and now - self._last >= AT_REST:
            self._give_back()

    def _give_back(self) -> None:
        self._first = None
        if self._trim is not None:
            self._trim(0)
