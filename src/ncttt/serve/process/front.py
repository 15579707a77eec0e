"""The worker of another process, seen from the process with the address: it looks like one of this process.

What it tells arrives in the event loop, without a thread that would take turns with that. A process that dies is
replaced: requests that it had are refused, those that come meanwhile wait for the new one, which goes on from the
snapshots.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

import numpy as np

from ncttt.serve.batching import QueueClosed, QueueFull
from ncttt.serve.journal import Journal
from ncttt.serve.offered import Offered
from ncttt.serve.process.launching import ModelProcess
from ncttt.serve.process.messages import END, Images, Operation, Turn, next_of, packed
from ncttt.serve.settings import Settings

CHUNK = 1 << 20  # bytes that are read ahead


class WorkerProcess:
    """Looks like a `Worker`; `say` gets a line when the process has died."""

    def __init__(self, settings: Settings, process: ModelProcess, say: Callable[[str], None]):
        self.settings, self._process, self._say = settings, process, say
        self.served: Offered = process.first_word()
        self.journal = Journal(settings, self.served.classes, lambda: [process.number])
        self._loop: asyncio.AbstractEventLoop | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._unsent: list[bytes] = []  # until there is a writer
        self._asked: dict[int, tuple[Future[Any], int]] = {}  # what is not answered, and how many images that is
        self._number = self._images = self._in_hand = 0
        self._closed, self._ended = False, Future[None]()

    @property
    def alive(self) -> bool:
        """Whether there is a process, or will be."""
        return self._loop is not None and not self._ended.done()

    @property
    def ready(self) -> bool:
        """Whether requests are answered now."""
        return self._writer is not None and not self._closed and self._waiting < self.settings.most_waiting

    def start(self) -> None:
        """Begin to work, in the event loop that this is called in."""
        self._loop = asyncio.get_running_loop()
        self._task = self._loop.create_task(self._work())

    def submit(self, stream: str, images: np.ndarray, shift: bool = False) -> Future[Any]:
        """Let images of a stream, uint8 (N, S, S, 3), wait for their `Answer`."""
        waiting, most = self._waiting, self.settings.most_waiting
        if waiting + len(images) > most:
            raise QueueFull(f"{waiting} images wait, and no more than {most} may; try again later")
        number, future = self._expect(len(images))
        self._send(Images(number, stream, images, shift, time.perf_counter()))
        return future

    def call(self, function: Callable[[Any], Any]) -> Future[Any]:
        """Let a function, which is pickled, be called with the streams."""
        number, future = self._expect(0)
        self._send(Operation(number, function))
        return future

    def text(self) -> bytes:
        """The metrics in the format of Prometheus."""
        self.journal.metrics.waiting(self._waiting, self.settings.most_waiting)
        return self.journal.metrics.text()

    def close(self) -> None:
        """Answer all that waits, save all streams and end; for a thread that is not the event loop's."""
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._end)
        self._ended.result()

    @property
    def _waiting(self) -> int:
        return self._images - self._in_hand

    def _expect(self, images: int) -> tuple[int, Future[Any]]:
        if self._closed or not self.alive:
            raise QueueClosed("the service is ending")
        self._number += 1
        self._images += images
        self._asked[self._number] = future, _ = Future[Any](), images
        return self._number, future

    def _send(self, message: Any) -> None:
        if self._writer is None:
            self._unsent.append(packed(message))
        else:
            self._writer.write(packed(message))

    def _end(self) -> None:
        self._closed = True
        self._send(END)

    async def _work(self) -> None:
        """Hear one process after the other, until one ends as it was asked to."""
        try:
            await self._hear()
            while not self._closed:
                self._say(f"the process of the model has ended ({self._process.end()}); another one is started")
                self._process.start()
                await asyncio.to_thread(self._process.first_word)
                await self._hear()
        except Exception as error:
            self._say(f"the process of the model cannot be started again: {error}")
        finally:
            self._ended.set_result(None)
            self._refuse()

    async def _hear(self) -> None:
        """Hear what the process tells until it ends; what it has not answered then is refused."""
        reader, self._writer = await asyncio.open_unix_connection(sock=self._process.link, limit=CHUNK)
        self._writer.writelines(self._unsent)
        self._unsent.clear()
        with suppress(EOFError, ConnectionError):
            while True:
                self._heard(await next_of(reader))
        self._writer.close()
        self._writer = None
        self._refuse()
        await asyncio.to_thread(self._process.end)

    def _heard(self, turn: Turn) -> None:
        for number, result, error in turn.done:
            future, images = self._asked.pop(number)
            self._images -= images
            _fulfil(future, result, error)
        self._in_hand = turn.in_hand
        for name, arguments in turn.notes:
            getattr(self.journal, name)(*arguments)

    def _refuse(self) -> None:
        error = QueueClosed("the process of the model has ended before it answered; try again in a few seconds")
        for future, _ in self._asked.values():
            _fulfil(future, None, error)
        self._asked.clear()
        self._images = self._in_hand = 0


def _fulfil(future: Future[Any], result: Any, error: Exception | None) -> None:
    if not future.set_running_or_notify_cancel():
        return  # nobody waits any more
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
