"""Playground: labelled images of a data set under a corruption, sent to a stream of the service as any client would.

There is one player, one stream and one batch at a time, at a limited rate, and it ends by itself. Labels only score.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ncttt.base.errors import InputError, nearest
from ncttt.data import ImageSet, data_root, data_set
from ncttt.data.corruptions import CLEAN, CORRUPTIONS, EXTRA
from ncttt.data.shuffling import shuffled
from ncttt.data.stream import corrupted_domain
from ncttt.report.names import spelled
from ncttt.serve.backend import Backend
from ncttt.serve.batching import QueueFull
from ncttt.serve.dashboard.answers import PlayRequest
from ncttt.serve.operations import delete_if_there

STREAM = "playground"
BATCH = 10  # images of a request
MOST = 6_000  # images until it ends by itself
OF_PHASE = 500  # images of each part of a scenario
KINDS = (CLEAN, *CORRUPTIONS, *EXTRA)
# Image sets that it knows, each with corruptions that its small model fails on and adaptation mends: noise hardly
# shifts digits, which are drawn thick and without texture.
SCENARIOS = {
    "digits": (CLEAN, "frost", "motion_blur", CLEAN),
    "cifar10": (CLEAN, "gaussian_noise", "defocus_blur", CLEAN),
}


@dataclass(frozen=True)
class Play:
    """What is played: an image set, and corruptions at a severity, each for so many images; None is without end."""

    data: str
    kinds: tuple[str, ...]
    severity: int
    images: int | None
    rate: int

    @property
    def most(self) -> int:
        """Images until it ends by itself."""
        return MOST if self.images is None else self.images * len(self.kinds)

    def kind(self, sent: int) -> str:
        """The corruption of the next image."""
        return self.kinds[0 if self.images is None else min(sent // self.images, len(self.kinds) - 1)]


class Playground:
    """Plays image sets of the classes that the worker's model knows; used by the thread of the routes alone."""

    def __init__(self, worker: Backend):
        self._worker, self._sets = worker, fitting(worker.served.classes, worker.served.size)
        self._loaded: dict[str, ImageSet] = {}
        self._play = Play(self._sets[0], (CLEAN,), 5, None, 50)
        self._task: asyncio.Task[None] | None = None
        self._ending, self._one = asyncio.Event(), asyncio.Lock()
        self._sent, self._place, self._shown = 0, 0, ""
        self._trouble: str | None = None

    async def play(self, asked: PlayRequest) -> None:
        """Begin to play, or go on with something else."""
        if asked.data and asked.data not in self._sets:
            raise InputError(f"no image set {asked.data!r} for this model{nearest(asked.data, self._sets)}")
        if asked.corruption not in KINDS:
            raise InputError(f"no corruption {asked.corruption!r}{nearest(asked.corruption, KINDS)}")
        data = asked.data or self._sets[0]
        kinds, images = (SCENARIOS[data], OF_PHASE) if asked.scenario else ((asked.corruption,), None)
        async with self._one:
            if asked.scenario:
                await self._end()
                await self._begin_anew()
            self._play = Play(data, kinds, asked.severity, images, asked.images_per_second)
            self._sent, self._trouble = 0, None
            if not self.playing:
                self._ending.clear()
                self._task = asyncio.create_task(self._run())

    async def pause(self) -> None:
        """Stop playing, once the batch that is on its way has come back."""
        async with self._one:
            await self._end()

    @property
    def playing(self) -> bool:
        """Whether images are being sent."""
        return self._task is not None and not self._task.done()

    def told(self) -> dict[str, Any]:
        """What can be shown and what is shown, as JSON values."""
        play = self._play
        sets = [{"name": name, "title": data_set(name).title, "scenario": list(SCENARIOS[name])} for name in self._sets]
        return {
            "stream": STREAM,
            "sets": sets,
            "corruptions": list(KINDS),
            "playing": self.playing,
            "scenario": play.images is not None,
            "data": play.data,
            "corruption": play.kind(self._sent),
            "severity": play.severity,
            "sent": self._sent,
            "most": play.most,
            "trouble": self._trouble,
        }

    async def _end(self) -> None:
        self._ending.set()
        if self._task is not None:
            await self._task

    async def _begin_anew(self) -> None:
        if self._worker.served.protocol.remembers:
            await asyncio.wrap_future(self._worker.call(partial(delete_if_there, name=STREAM)))
        self._worker.journal.history.forget(STREAM)
        self._place, self._shown = 0, ""

    async def _run(self) -> None:
        clock = asyncio.get_running_loop().time
        try:
            while self._sent < self._play.most and not self._ending.is_set():
                until = clock() + BATCH / self._play.rate
                await self._send()
                with suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._ending.wait(), max(0.001, until - clock()))
        except Exception as error:  # the page tells it; the service goes on
            self._trouble = str(error)[:500] or type(error).__name__

    async def _send(self) -> None:
        play, history = self._play, self._worker.journal.history
        kind = play.kind(self._sent)
        images, labels = await asyncio.to_thread(self._draw, play.data, kind, play.severity, self._place)
        named = spelled(kind) if kind == CLEAN else f"{spelled(kind)}, severity {play.severity}"
        if self._shown != f"{play.data}: {named}":
            self._shown = f"{play.data}: {named}"
            history.event(STREAM, "domain", named)
        try:
            answer = await asyncio.wrap_future(self._worker.submit(STREAM, images))
        except QueueFull:
            return  # others come first
        right = [int((each.argmax(1) == labels).sum()) for each in (answer.probabilities, answer.source_probabilities)]
        history.scored(STREAM, *right, labels=len(labels))
        history.show(STREAM, images, answer, labels)
        self._place += len(images)
        if play is self._play:  # else these were on their way when something else began
            self._sent += len(images)

    def _draw(self, name: str, kind: str, severity: int, first: int) -> tuple[np.ndarray, np.ndarray]:
        """The next images of a set under a corruption, and their labels."""
        if name not in self._loaded:
            self._loaded = {name: data_set(name).load(data_root(), "test")}
        data = self._loaded[name]
        places = shuffled(len(data), 0, 0).take(range(first, first + BATCH), mode="wrap")
        domain = corrupted_domain(data, places, kind, severity, data_set(name).constants)
        assert domain.labels is not None
        return np.ascontiguousarray(domain.images[:]), domain.labels


def fitting(classes: tuple[str, ...], size: int) -> list[str]:
    """The image sets on this machine that have these classes and a size of 32; an `InputError` if there is none."""
    here = [name for name in SCENARIOS if data_set(name).present(data_root())]
    found = [name for name in here if data_set(name).classes == classes and size == 32]
    if not found:
        raise InputError(
            f"the playground needs an image set of the model's {len(classes)} classes at {size} pixels; here are "
            f"{' and '.join(here)}: serve digits-small-ncttt, or fetch cifar10 (ncttt data get cifar10)"
        )
    return found
