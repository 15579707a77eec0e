"""The replicas of a service, seen from the process that has its address: they look like one worker.

A request goes to the replica that its stream belongs to. If another one still owns the stream, it is asked to give
it up; if it is gone or does not answer, the stream is taken from it. A request whose replica died is sent again to the
next: what the dead one had not saved it has taken along, so at worst a stream learns twice from one batch.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from ray.exceptions import RayActorError
from ray.serve.exceptions import RayServeException
from ray.serve.handle import DeploymentHandle

from ncttt.base.errors import InputError
from ncttt.serve.batching import QueueClosed, QueueFull
from ncttt.serve.cluster import present
from ncttt.serve.cluster.merged import merged
from ncttt.serve.cluster.routing import EXACTLY
from ncttt.serve.journal import Journal
from ncttt.serve.ownership import Claims, Lost, Owned
from ncttt.serve.served import Served
from ncttt.serve.settings import Settings
from ncttt.serve.snapshots import Snapshots

PATIENCE = 60.0  # seconds after which a request without a replica is refused
GIVING_UP = 5.0  # seconds that a replica has to give up a stream, and one that is ending to save it
PAUSE = 0.05
IN_MEMORY = re.compile(rb'^ncttt_state_version{stream="([^"]+)"', re.MULTILINE)
ANY_STREAM = re.compile(rb'\bstream="([^"]+)"')
CAUSES: dict[str, Callable[..., str]] = {
    "reset": lambda: "reset",
    "freeze": lambda frozen: "frozen" if frozen else "thawed",
    "roll_back": lambda version: f"rolled back to {version}",
}  # what operators do, in the words of a history
FRONT = "front"  # in place of a replica's name, the process that has the address


class Replicas:
    """Looks like a `Worker`, and lets the replicas behind a handle do the work."""

    def __init__(self, settings: Settings, served: Served, handle: DeploymentHandle, application: str):
        self.settings, self.served, self.journal = settings, served, Journal(settings, served.classes)
        self._handle, self._application = handle, application
        folder = Path(settings.state)
        self._snapshots, self._claims = Snapshots(folder, settings.versions), Claims(folder, FRONT)
        self._operators = ThreadPoolExecutor(8, thread_name_prefix="operators")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._images, self._closed = 0, False

    @property
    def alive(self) -> bool:
        """Whether this process takes requests; replicas that die come back by themselves."""
        return self._loop is not None and not self._closed

    @property
    def ready(self) -> bool:
        """Whether requests are taken now."""
        return self.alive and bool(self._present) and self._images < self._most

    def start(self) -> None:
        """Begin to take requests, in the event loop that this is called in."""
        self._loop = asyncio.get_running_loop()

    def close(self) -> None:
        """Take no more requests."""
        self._closed = True
        self._operators.shutdown()

    def submit(self, stream: str, images: np.ndarray, shift: bool = False) -> Future[Any]:
        """Let images of a stream, uint8 (N, S, S, 3), wait for their `Answer`."""
        if self._closed:
            raise QueueClosed("the service is ending")
        if self._images + len(images) > self._most:
            raise QueueFull(f"{self._images} images wait, and no more than {self._most} may; try again later")
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(self._predict(stream, images, shift), self._loop)

    def call(self, function: Callable[[Any], Any]) -> Future[Any]:
        """Let a function be called with what looks like the streams of all replicas."""
        if self._closed:
            raise QueueClosed("the service is ending")
        if not self.served.protocol.remembers:
            raise InputError(f"the protocol {self.served.protocol.name!r} keeps no state of streams")
        return self._operators.submit(function, RemoteStreams(self))

    def text(self) -> bytes:
        """The metrics of all replicas, and of this process."""
        metrics, texts = self.journal.metrics, self.wait(self._texts())
        if self.served.protocol.remembers:
            hot = {name for _, text in texts for name in IN_MEMORY.findall(text)}
            metrics.held(0, max(0, len(self.names()) - len(hot)))
            for name in set(ANY_STREAM.findall(metrics.text())) - hot:
                metrics.forget(name.decode())
        return merged({FRONT: metrics.text(), **dict(sorted(texts))})

    def names(self) -> list[str]:
        """All streams by name."""
        return self._snapshots.names()

    def facts(self, name: str) -> Any:
        """What is known of a stream, by its owner if it has one."""
        owner = self._claims.owner(name)
        return self.wait(self._ask(f"{EXACTLY}{owner}" if owner in self._present else name, "operate", name, "facts"))

    def operate(self, what: str, stream: str, *arguments: Any) -> Any:
        """What a method of the streams with this name returns, called where the stream is."""
        done = self.wait(self._settled(stream, "operate", stream, what, *arguments))
        if what == "delete":
            self.journal.history.forget(stream)
        elif what in CAUSES:
            self.journal.operated(stream, CAUSES[what](*arguments))
        return done

    def wait(self, work: Any) -> Any:
        """The result of a coroutine, for a thread that is not the event loop's."""
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    @property
    def _present(self) -> list[str]:
        return present.replicas(self._application)

    @property
    def _most(self) -> int:
        return self.settings.most_waiting * max(1, len(self._present))

    async def _predict(self, stream: str, images: np.ndarray, shift: bool) -> Any:
        self._images += len(images)
        try:
            answer = await self._settled(stream, "predict", stream, images, shift)
            self.journal.history.request(stream, answer)
            return answer
        finally:
            self._images -= len(images)

    async def _settled(self, stream: str, method: str, *arguments: Any) -> Any:
        """The answer of the replica that a stream belongs to, once that owns it."""
        until = time.monotonic() + PATIENCE
        while True:
            try:
                return await self._ask(stream, method, *arguments, until=until)
            except Owned as error:
                await self._move(stream, error.owner)
            except Lost:
                pass
            if time.monotonic() > until:
                raise QueueClosed(f"stream {stream!r} is asked for in too many places; try again later")

    async def _ask(self, key: str, method: str, *arguments: Any, until: float | None = None) -> Any:
        """The answer of the replica for a key; an error that it returned is raised, and one that died replaced."""
        until = time.monotonic() + PATIENCE if until is None else until
        while True:
            remote = getattr(self._handle.options(multiplexed_model_id=key), method)
            try:
                answer = await asyncio.wait_for(_awaited(remote.remote(*arguments)), until - time.monotonic())
            except (RayActorError, RayServeException):
                await asyncio.sleep(PAUSE)
                continue
            except asyncio.TimeoutError:
                raise QueueClosed(f"no replica answered within {PATIENCE:g} seconds; try again later") from None
            if isinstance(answer, Exception):
                raise answer
            return answer

    async def _move(self, stream: str, owner: str) -> None:
        """See to it that the owner gives up a stream; else let its new replica take it."""
        until = time.monotonic() + GIVING_UP
        if owner in self._present:
            with suppress(Exception):  # whatever it was: the stream is taken then
                await self._ask(f"{EXACTLY}{owner}", "operate", stream, "give_up", until=until)
        while self._claims.owner(stream) == owner and owner not in present.DEAD and time.monotonic() < until:
            await asyncio.sleep(PAUSE)  # it is ending, and saves its streams
        if self._claims.owner(stream) == owner:
            if owner not in self._present:
                present.DEAD.add(owner)  # of a former run, say: its other streams need not wait again
            with suppress(Owned, Lost):  # another request was faster
                await self._ask(stream, "operate", stream, "take", owner)

    async def _texts(self) -> list[tuple[str, bytes]]:
        asked = [self._ask(f"{EXACTLY}{name}", "text", until=time.monotonic() + GIVING_UP) for name in self._present]
        found = await asyncio.gather(*asked, return_exceptions=True)
        return [each for each in found if isinstance(each, tuple)]


class RemoteStreams:
    """The streams of all replicas; what takes the name of a stream first is called where that stream is."""

    def __init__(self, replicas: Replicas):
        self._replicas = replicas
        self.names, self.facts = replicas.names, replicas.facts

    def __getattr__(self, what: str) -> Callable[..., Any]:
        return partial(self._replicas.operate, what)


async def _awaited(response: Any) -> Any:
    return await response
