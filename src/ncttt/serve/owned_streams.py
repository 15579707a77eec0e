"""Streams in a folder that several replicas share: a stream is in the memory of its owner alone.

Whoever takes the stream of one that died goes on from its newest snapshot, with a version beyond all that the dead one
can have given to answers (`ncttt.serve.ownership`).
"""

from __future__ import annotations

import time
from typing import Any

from ncttt.serve.ownership import AHEAD, NOBODY, Claims, Lost
from ncttt.serve.snapshots import Snapshots
from ncttt.serve.streams import Stream, Streams

CHECK = 1.0  # seconds after which a replica finds out that a stream that nobody asked it for was taken from it


class OwnedStreams(Streams):
    """The streams of one replica; takes what `Streams` takes, and the claims that its snapshots are fenced with."""

    def __init__(self, served: Any, snapshots: Snapshots, claims: Claims, **settings: Any):
        super().__init__(served, snapshots, **settings)
        self._claims = claims
        self._taken_from: dict[str, str] = {}
        self._checked_at = 0.0

    def __len__(self) -> int:
        """How many streams this replica has; those on disk belong to all."""
        return len(self._hot)

    def get(self, name: str) -> Stream:
        if name in self._hot and not self._claims.holds(name):
            self._drop(self._hot[name])
        if name not in self._hot:
            self._look_for(name)
        return super().get(name)

    def save_due(self, everything: bool = False) -> None:
        now = time.monotonic()
        if now - self._checked_at >= CHECK:
            self._checked_at = now
            for stream in (each for each in self.hot if not self._claims.holds(each.name)):
                self._drop(stream)
        super().save_due(everything)

    def settle(self, stream: Stream) -> None:
        super().settle(stream)
        if stream.version - stream.saved >= AHEAD:
            self.save(stream).result()
        self._claims.check(stream.name)

    def take(self, name: str, owner: str) -> None:
        """Take a stream from an owner that is gone, or that does not answer."""
        self._taken_from[name] = owner
        try:
            self.get(name)
        finally:
            del self._taken_from[name]

    def give_up(self, name: str) -> None:
        """Save a stream and let others own it."""
        if name in self._hot:
            self._cool(self._hot[name])

    def delete(self, name: str) -> None:
        self._check_known(name)
        self._claims.claim(name)
        super().delete(name)
        self._claims.forget(name)

    def names(self) -> list[str]:
        self._names = {*self._snapshots.names(), *self._hot}
        return super().names()

    def close(self) -> None:
        super().close()
        for stream in self.hot:
            if stream.version == stream.saved:
                self._claims.release(stream.name)

    def _load(self, name: str) -> Stream:
        before = self._snapshots.versions(name)
        floor = self._claims.claim(name, self._taken_from.get(name, NOBODY), before[-1] if before else 0)
        self._names.add(name)  # another replica may have begun it meanwhile
        stream = super()._load(name)
        if floor is not None:
            stream.version = max(stream.version + AHEAD, floor)
            stream.changed(f"taken from a replica at {stream.saved}")
            self.save(stream).result()  # the next owner must count from here
        return stream

    def _cool(self, stream: Stream) -> None:
        try:
            self._claims.check(stream.name)
            super()._cool(stream)
        except Lost:
            self._drop(stream)
        else:
            self._claims.release(stream.name)

    def _drop(self, stream: Stream) -> None:
        """Forget what this replica knew of a stream that another one owns."""
        self._hot.pop(stream.name, None)
        self._claims.forget(stream.name)
        self._spare_adapter(stream)

    def _check_known(self, name: str) -> None:
        self._look_for(name)
        super()._check_known(name)

    def _look_for(self, name: str) -> None:
        """Whether there is a stream is said by the folder: others begin and delete streams, too."""
        if (self._snapshots.folder / name).is_dir():
            self._names.add(name)
        else:
            self.names()
