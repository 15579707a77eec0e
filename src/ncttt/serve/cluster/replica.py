"""A replica: the worker of a service, with a queue and streams of its own, in a process that Ray starts and stops."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import numpy as np
from ray import serve

from ncttt.adapt.protocols import protocol_of
from ncttt.base.errors import InputError
from ncttt.serve.batching import QueueClosed, QueueFull
from ncttt.serve.journal import Journal
from ncttt.serve.ownership import Claims, Lost, Owned
from ncttt.serve.served import Served
from ncttt.serve.settings import Settings
from ncttt.serve.worker import Worker

EXPECTED = (InputError, QueueFull, QueueClosed, OSError, Owned, Lost)  # told in an answer, without a traceback


class Replica:
    """Owns the streams that requests come for; Ray calls `check_health`, and `__del__` before it ends the process."""

    def __init__(self, settings: Settings):
        self._name = serve.get_replica_context().replica_id.unique_id
        remembers = protocol_of(settings.protocol).remembers
        claims = Claims(Path(settings.state), self._name) if remembers else None
        served = Served(settings)
        journal = Journal(settings, served.classes)
        self._worker = Worker(settings, served, journal, lambda line: print(line, file=sys.stderr, flush=True), claims)
        self._worker.start()

    async def predict(self, stream: str, images: np.ndarray, shift: bool) -> Any:
        """The `Answer` for images of a stream, or the error that there was."""
        try:
            return await asyncio.wrap_future(self._worker.submit(stream, images, shift))
        except EXPECTED as error:
            return error

    async def operate(self, stream: str, what: str, *arguments: Any) -> Any:
        """What a method of `OwnedStreams` with this name returns for a stream, or the error that there was."""
        try:
            return await asyncio.wrap_future(
                self._worker.call(lambda streams: getattr(streams, what)(stream, *arguments))
            )
        except EXPECTED as error:
            return error

    async def text(self) -> tuple[str, bytes]:
        """The name of this replica, and its metrics."""
        return self._name, await asyncio.to_thread(self._worker.text)

    def check_health(self) -> None:
        """Raise an exception if this replica must be started again."""
        if not self._worker.alive:
            raise RuntimeError("the worker has ended")

    def __del__(self) -> None:
        worker = self.__dict__.pop("_worker", None)
        if worker is not None:
            worker.close()
