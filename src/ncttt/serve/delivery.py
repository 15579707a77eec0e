"""Delivery of results from the worker's thread to the event loop: one wake-up for all that are ready."""

from __future__ import annotations

import asyncio
from collections import deque
from concurrent.futures import Future
from typing import Any

from ncttt.serve.batching import QueueClosed


class Delivery:
    """Lets coroutines of one event loop wait for futures of other threads."""

    def __init__(self) -> None:
        self._ready: deque[tuple[asyncio.Future[Any], Future[Any]]] = deque()
        self._called = False

    async def result(self, future: Future[Any]) -> Any:
        """What comes of a future that another thread fulfils."""
        loop = asyncio.get_running_loop()
        waiter = loop.create_future()

        def arrived(done: Future[Any]) -> None:
            self._ready.append((waiter, done))
            if not self._called:
                self._called = True
                loop.call_soon_threadsafe(self._deliver)

        future.add_done_callback(arrived)
        return await waiter

    def _deliver(self) -> None:
        self._called = False  # first: what comes from now on calls again
        while self._ready:
            waiter, done = self._ready.popleft()
            if waiter.done():  # nobody waits any more
                continue
            if done.cancelled():
                waiter.set_exception(QueueClosed("the service is ending"))
                continue
            error = done.exception()
            if error is None:
                waiter.set_result(done.result())
            else:
                waiter.set_exception(error)
