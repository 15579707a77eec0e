"""Streams: an adapter for each, a bounded number of them in memory, the others as snapshots on disk.

All of it belongs to the one thread that works; only the writing of files goes to a thread of its own. A version counts
what has changed a stream: batches that it remembers, and what operators did. It never falls: a stream that is rolled
back gets a new version with the old content.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from ncttt.adapt import Adapter
from ncttt.base.errors import InputError, nearest
from ncttt.serve.drift import Drift, Watcher
from ncttt.serve.served import Served
from ncttt.serve.snapshots import Facts, Snapshots

WINDOW = "drift"  # of a snapshot: the images that the drift score is of; older snapshots have none


class UnknownStream(InputError):
    """There is no stream, or no version of it, of that name."""


class TooManyStreams(InputError):
    """There are so many streams that no new one is begun."""


@dataclass(eq=False)
class Stream:
    """A stream in memory; `saved` is the newest version that survives a kill, and version 0 is the source itself."""

    name: str
    adapter: Adapter
    watcher: Watcher | None
    version: int = 0
    saved: int = 0
    frozen: bool = False
    images: int = 0
    cause: str = "new"
    drift: Drift | None = None
    queued: int = 0  # the newest version that is on its way to the disk
    saved_at: float = 0.0

    def changed(self, cause: str) -> None:
        """The state is another one than before."""
        self.version, self.cause = self.version + 1, cause


@dataclass(frozen=True)
class StreamFacts:
    """What can be told of a stream; of one that is on disk, only its versions."""

    name: str
    hot: bool
    versions: list[int]
    version: int
    saved: int
    frozen: bool | None = None
    images: int | None = None
    drift: Drift | None = None


class Streams:
    """The streams of a service by name; `say` gets a line on each snapshot that cannot be used."""

    def __init__(
        self,
        served: Served,
        snapshots: Snapshots,
        *,
        hot: int,
        most: int,
        save_seconds: float,
        say: Callable[[str], None],
        on_cold: Callable[[str], None],
        on_operated: Callable[[str, str], None] = lambda name, cause: None,
    ):
        self._served, self._snapshots, self._say, self._on_cold = served, snapshots, say, on_cold
        self._on_operated = on_operated
        self._most_hot, self._most, self._save_seconds = hot, most, save_seconds
        self._hot: OrderedDict[str, Stream] = OrderedDict()
        self._names = set(snapshots.names())
        self._spare: list[Adapter] = []  # of streams that went to disk
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="snapshots")

    def __len__(self) -> int:
        """How many streams there are, in memory and on disk."""
        return len(self._names)

    @property
    def hot(self) -> list[Stream]:
        """Those in memory, the least recently used first."""
        return list(self._hot.values())

    def get(self, name: str) -> Stream:
        """The stream of that name, from memory, from disk or new; another one may have to go to disk."""
        if name in self._hot:
            self._hot.move_to_end(name)
            return self._hot[name]
        if name not in self._names and len(self._names) >= self._most:
            raise TooManyStreams(f"there are {self._most} streams, and no more may be; delete one, or use another")
        while len(self._hot) >= self._most_hot:
            self._cool(next(iter(self._hot.values())))
        self._hot[name] = self._load(name)
        self._names.add(name)
        return self._hot[name]

    def settle(self, stream: Stream) -> None:
        """See to it that a batch of a stream may be answered."""
        if not self._save_seconds and stream.version > stream.saved:
            self.save(stream).result()

    def facts(self, name: str) -> StreamFacts:
        """What is known of a stream, which stays where it is."""
        self._check_known(name)
        versions, stream = self._snapshots.versions(name), self._hot.get(name)
        if stream is None:
            newest = versions[-1] if versions else 0
            return StreamFacts(name, False, versions, newest, newest)
        known = (stream.version, stream.saved, stream.frozen, stream.images, stream.drift)
        return StreamFacts(name, True, versions, *known)

    def names(self) -> list[str]:
        """All streams by name."""
        return sorted(self._names)

    def freeze(self, name: str, frozen: bool) -> StreamFacts:
        """Let a stream learn nothing from now on, or let it learn again."""
        return self._operate(name, "frozen" if frozen else "thawed", lambda stream: setattr(stream, "frozen", frozen))

    def reset(self, name: str) -> StreamFacts:
        """Send a stream back to the source model."""
        return self._operate(name, "reset", lambda stream: stream.adapter.reset())

    def roll_back(self, name: str, version: int) -> StreamFacts:
        """Give a stream the content of an earlier version."""
        self._check_known(name)
        versions = self._snapshots.versions(name)
        if version not in versions:
            kept = ", ".join(map(str, versions[-8:])) or "none"
            raise UnknownStream(f"stream {name!r} has no version {version} on disk; there are: {kept}")
        facts, state = self._snapshots.read(name, version)  # now, because saving the present state may remove it
        self._check_weights(facts)
        state.pop(WINDOW, None)  # drift is of the images that come now
        return self._operate(name, f"rolled back to {version}", lambda stream: stream.adapter.load_stream_state(state))

    def delete(self, name: str) -> None:
        """Forget a stream, in memory and on disk."""
        self._check_known(name)
        stream = self._hot.pop(name, None)
        if stream is not None:
            self._spare_adapter(stream)
        self._writer.submit(self._snapshots.delete, name).result()
        self._names.discard(name)

    def save_due(self, everything: bool = False) -> None:
        """Send to the disk what has changed and was not saved for a while; or all that has changed."""
        now = time.monotonic()
        for stream in self._hot.values():
            if stream.version > stream.queued and (everything or now - stream.saved_at >= self._save_seconds):
                self.save(stream)

    def save(self, stream: Stream) -> Future[None]:
        """Send the state of a stream to the disk; `stream.saved` tells when it is there."""
        facts = Facts(
            stream.name,
            stream.version,
            stream.frozen,
            stream.images,
            time.time(),
            stream.cause,
            self._served.weights,
        )
        stream.queued, stream.saved_at = stream.version, time.monotonic()
        return self._writer.submit(self._write, stream, facts, _state_of(stream))

    def close(self) -> None:
        """Save everything, and wait for it."""
        self.save_due(everything=True)
        self._writer.shutdown(wait=True)

    def _write(self, stream: Stream, facts: Facts, state: dict[str, Any]) -> None:
        try:
            self._snapshots.write(facts, state)
        except OSError as error:
            stream.queued = stream.saved  # to be tried again
            self._say(f"stream {facts.stream!r} cannot be saved: {error}")
            raise
        stream.saved = facts.version

    def _load(self, name: str) -> Stream:
        stream = Stream(name, self._spare.pop() if self._spare else self._served.adapter(), self._served.watcher())
        if name in self._names:
            self._restore(stream)
        return stream

    def _cool(self, stream: Stream) -> None:
        """Send a stream to disk; it stays in memory if the disk does not take it."""
        if stream.version > stream.saved:
            self.save(stream).result()
        del self._hot[stream.name]
        self._spare_adapter(stream)

    def _spare_adapter(self, stream: Stream) -> None:
        stream.adapter.reset()
        self._spare.append(stream.adapter)
        self._on_cold(stream.name)

    def _restore(self, stream: Stream) -> None:
        """Go on from the newest snapshot that can be used; from the source if there is none."""
        versions = self._snapshots.versions(stream.name)
        stream.version = stream.saved = stream.queued = versions[-1] if versions else 0
        for version in reversed(versions):
            try:
                facts, state = self._snapshots.read(stream.name, version)
                self._check_weights(facts)
                window = state.pop(WINDOW, None)
                stream.adapter.load_stream_state(state)
            except InputError as error:
                self._say(f"stream {stream.name!r} does not go on from version {version}: {error}")
                continue
            stream.frozen, stream.images, stream.cause = facts.frozen, facts.images, facts.cause
            if window and stream.watcher is not None:
                stream.drift = stream.watcher.go_on(window)  # an alarm outlives a restart
            if version < stream.version:
                stream.changed(f"restored from {version}")
            return
        if versions:
            stream.changed("began anew")

    def _check_weights(self, facts: Facts) -> None:
        if facts.weights != self._served.weights:
            raise InputError("it belongs to a model with other weights")

    def _check_known(self, name: str) -> None:
        if name not in self._names:
            raise UnknownStream(f"no stream {name!r}{nearest(name, sorted(self._names))}")

    def _operate(self, name: str, cause: str, change: Callable[[Stream], None]) -> StreamFacts:
        """Do what an operator asks; the state before it and the one after it are on disk when this returns."""
        self._check_known(name)
        stream = self.get(name)
        if stream.version > stream.saved:
            self.save(stream).result()
        change(stream)
        stream.changed(cause)
        self._on_operated(name, cause)
        self.save(stream).result()
        return self.facts(name)


def _state_of(stream: Stream) -> dict[str, Any]:
    state = stream.adapter.stream_state()
    return state if stream.watcher is None else state | {WINDOW: stream.watcher.kept()}
