"""Batching: requests of a stream wait a little for others, and one thread takes them in batches.

A batch is of one stream. It is ready when it has `batch_size` images, or when its first request has waited for
`wait` seconds; the batch that has waited longest is taken first. What has to be done between batches, such as a reset
of a stream, goes before them.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Condition
from typing import Any

import numpy as np


class QueueFull(Exception):
    """So many images wait that no more are taken."""


class QueueClosed(Exception):
    """The service is ending."""


@dataclass(eq=False)
class Waiting:
    """A request that waits: the images of a stream, uint8 (N, S, S, 3), and the future of what comes of them."""

    stream: str
    images: np.ndarray
    shift: bool = False
    arrived: float = field(default_factory=time.perf_counter)
    future: Future[Any] = field(default_factory=Future)


@dataclass(eq=False)
class Call:
    """A function to be called by the thread that takes batches, and the future of its result."""

    function: Callable[[], Any]
    future: Future[Any] = field(default_factory=Future)


class Room:
    """Counts what is on its way to the queue, images or bytes, of which there may be no more than so many."""

    def __init__(self, most: int, unit: str):
        self._most, self._unit, self._taken = most, unit, 0

    @contextmanager
    def share(self) -> Iterator[Callable[[int], None]]:
        """A function that takes room for so many more, until the `with` block ends; `QueueFull` if there is none."""
        own = 0

        def take(count: int) -> None:
            nonlocal own
            if self._taken + count > self._most:
                raise QueueFull(
                    f"{self._taken:,} {self._unit} are being read, and no more than {self._most:,} may; try again later"
                )
            self._taken, own = self._taken + count, own + count

        try:
            yield take
        finally:
            self._taken -= own


class Queue:
    """What waits for the one thread that works, by stream."""

    def __init__(self, batch_size: int, wait: float, most_waiting: int):
        self._batch_size, self._wait, self._most = batch_size, wait, most_waiting
        self._changed = Condition()
        self._streams: dict[str, deque[Waiting]] = {}
        self._calls: deque[Call] = deque()
        self._images, self._closed = 0, False

    def __len__(self) -> int:
        """How many images wait."""
        return self._images

    @property
    def open(self) -> bool:
        """Whether requests are taken."""
        return not self._closed

    def put(self, waiting: Waiting) -> None:
        """Let a request wait; `QueueFull` if too many images do already."""
        with self._changed:
            self._check_open()
            if self._images + len(waiting.images) > self._most:
                raise QueueFull(f"{self._images} images wait, and no more than {self._most} may; try again later")
            requests = self._streams.setdefault(waiting.stream, deque())
            requests.append(waiting)
            self._images += len(waiting.images)
            if len(requests) == 1 or self._is_full(requests):  # else the thread would wake up for nothing
                self._changed.notify()

    def call(self, function: Callable[[], Any]) -> Future[Any]:
        """Let a function be called before the next batch."""
        call = Call(function)
        with self._changed:
            self._check_open()
            self._calls.append(call)
            self._changed.notify()
        return call.future

    def take(self, idle: float | None = None) -> list[Waiting] | Call | None:
        """The next batch or call, waiting for one; None after `idle` seconds without, or when closed and empty."""
        until = None if idle is None else time.perf_counter() + idle
        with self._changed:
            while True:
                if self._calls:
                    return self._calls.popleft()
                now = time.perf_counter()
                ready = self._oldest(now)
                if ready is not None:
                    return self._batch(ready)
                if (self._closed and not self._streams) or (until is not None and now >= until):
                    return None
                times = [first[0].arrived + self._wait for first in self._streams.values()]
                times += [] if until is None else [until]
                self._changed.wait(max(0.0, min(times) - now) if times else None)

    def close(self) -> None:
        """Take no more; what waits is still to be taken, and at once."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _check_open(self) -> None:
        if self._closed:
            raise QueueClosed("the service is ending")

    def _oldest(self, now: float) -> str | None:
        ready = [
            (requests[0].arrived, stream)
            for stream, requests in self._streams.items()
            if self._closed or now - requests[0].arrived >= self._wait or self._is_full(requests)
        ]
        return min(ready)[1] if ready else None

    def _is_full(self, requests: deque[Waiting]) -> bool:
        return sum(len(request.images) for request in requests) >= self._batch_size

    def _batch(self, stream: str) -> list[Waiting]:
        """Whole requests, at least one, of no more than a batch of images."""
        requests, batch = self._streams[stream], [self._streams[stream].popleft()]
        images = len(batch[0].images)
        while requests and images + len(requests[0].images) <= self._batch_size:
            batch.append(requests.popleft())
            images += len(batch[-1].images)
        if not requests:
            del self._streams[stream]
        self._images -= images
        return batch
