"""The worker: one thread that owns the model, takes batches from the queue and answers them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ncttt.adapt import Trace
from ncttt.adapt.small_batches import ENOUGH
from ncttt.base.errors import InputError
from ncttt.serve.batching import Call, Queue, Waiting
from ncttt.serve.drift import Drift
from ncttt.serve.heap import Heap, trimming
from ncttt.serve.journal import Journal
from ncttt.serve.owned_streams import OwnedStreams
from ncttt.serve.ownership import Claims
from ncttt.serve.pace import Pace
from ncttt.serve.served import Served
from ncttt.serve.settings import Settings
from ncttt.serve.snapshots import Snapshots
from ncttt.serve.streams import Stream, Streams

IDLE = 0.25  # seconds after which a worker without work looks for streams to be saved


@dataclass(frozen=True)
class Answer:
    """What came of the images of one request.

    `probabilities` and `source_probabilities` are float32 (N, classes), of the adapted and of the source model; `shift`
    (N,) where it was asked for. The rest tells of the whole `batch`, which the worker numbers.
    """

    probabilities: np.ndarray
    source_probabilities: np.ndarray
    shift: np.ndarray | None
    images: int
    batch: int
    outcome: str
    trace: Trace
    steps_allowed: int
    changed: int
    drift: Drift | None
    version: int
    saved: int
    waited: float
    seconds: float


class Worker:
    """Predicts batches of streams with adapters of one model, in a thread of its own, from `start` to `close`.

    With `claims` it shares the folder of states with others, and owns what it serves.
    """

    def __init__(
        self,
        settings: Settings,
        served: Served,
        journal: Journal,
        say: Callable[[str], None],
        claims: Claims | None = None,
    ):
        self.settings, self.served, self.journal = settings, served, journal
        self.queue = Queue(settings.batch_size, settings.wait_ms / 1000, settings.most_waiting)
        self._pace = Pace(None if settings.budget_ms is None else settings.budget_ms / 1000)
        self._thread = threading.Thread(target=self.run, name="worker", daemon=True)
        self._heap, self._batches = Heap(trimming()), 0
        self._streams: Streams | None = None
        self._forgetful: Stream | None = None
        if self.served.protocol.remembers:
            kind = Streams if claims is None else partial(OwnedStreams, claims=claims)
            fence = {} if claims is None else {"fence": claims.check}
            self._streams = kind(
                self.served,
                Snapshots(Path(settings.state), settings.versions, **fence),
                hot=settings.hot_streams,
                most=settings.most_streams,
                save_seconds=settings.save_seconds,
                say=say,
                on_cold=journal.forget,
                on_operated=journal.operated,
            )
        else:
            self._forgetful = Stream("", self.served.adapter(), None)

    @property
    def streams(self) -> Streams:
        """The streams, for calls by the worker's own thread; an `InputError` where the protocol keeps no state."""
        if self._streams is None:
            raise InputError(f"the protocol {self.served.protocol.name!r} keeps no state of streams")
        return self._streams

    @property
    def alive(self) -> bool:
        """Whether the thread works."""
        return self._thread.is_alive()

    @property
    def ready(self) -> bool:
        """Whether requests are taken now."""
        return self.alive and self.queue.open and len(self.queue) < self.settings.most_waiting

    def text(self) -> bytes:
        """The metrics in the format of Prometheus."""
        self.journal.metrics.waiting(len(self.queue), self.settings.most_waiting)
        return self.journal.metrics.text()

    def start(self) -> None:
        """Begin to work, in a thread."""
        self._thread.start()

    def submit(self, stream: str, images: np.ndarray, shift: bool = False) -> Future[Answer]:
        """Let images, uint8 (N, S, S, 3), wait for their turn."""
        waiting = Waiting(stream, images, shift)
        self.queue.put(waiting)
        return waiting.future

    def call(self, function: Callable[[Streams], Any]) -> Future[Any]:
        """Let a function of the streams be called between two batches."""
        return self.queue.call(lambda: function(self.streams))

    def close(self) -> None:
        """Answer all that waits, save all streams and end."""
        self.queue.close()
        if self.alive:
            self._thread.join()
        if self._streams is not None:
            self._streams.close()

    def run(self, in_hand: Callable[[int], None] = lambda images: None) -> None:
        """Work until the queue is closed and empty; say how many images are in hand, before and after each batch."""
        while True:
            taken = self.queue.take(IDLE)
            if isinstance(taken, Call):
                _fulfil([taken.future], lambda call=taken: [call.function()])
            elif taken is not None:
                in_hand(sum(len(waiting.images) for waiting in taken))
                _fulfil([waiting.future for waiting in taken], lambda batch=taken: self._answers(batch))
                self._heap.batch()
            elif not self.queue.open:
                return
            else:
                self._heap.rest()
            if self._streams is not None:
                self._streams.save_due()
                hot = [(stream.name, stream.version, stream.saved) for stream in self._streams.hot]
                self.journal.held(len(self._streams), hot)
            in_hand(0)

    def _answers(self, batch: Sequence[Waiting]) -> list[Answer]:
        began = time.perf_counter()
        self._batches += 1
        pixels = batch[0].images if len(batch) == 1 else np.concatenate([waiting.images for waiting in batch])
        images = torch.from_numpy(pixels).permute(0, 3, 1, 2).float().div(255)
        stream = self._forgetful or self.streams.get(batch[0].stream)
        steps = self._pace.affordable(stream.adapter.steps, began - batch[0].arrived)
        shift = self.served.shift(images) if any(waiting.shift for waiting in batch) else None
        with stream.adapter.kept() if stream.frozen else nullcontext():
            logits = stream.adapter.predict_at([0 if stream.frozen else steps], images)[0]
        trace = stream.adapter.trace
        drift, source = self._shadow(stream, images, logits if trace.stopped == "left to source" else None)
        stream.images += len(images)
        if self._streams is not None:
            if not stream.frozen:
                stream.changed("learned" if trace.steps else "remembered")
            self._streams.settle(stream)
        seconds = time.perf_counter() - began
        self._pace.add(seconds, trace.steps)
        known = {
            "images": len(images),
            "batch": self._batches,
            "outcome": outcome_of(trace, len(images), stream),
            "trace": trace,
            "steps_allowed": steps,
            "changed": int((logits.argmax(1) != source.argmax(1)).sum()),
            "drift": drift,
            "version": stream.version,
            "saved": stream.saved,
            "seconds": seconds,
        }
        after, before = (part.softmax(1).cpu().numpy() for part in (logits, source))
        waits, answers, place = [began - waiting.arrived for waiting in batch], [], 0
        self.journal.batch(batch[0].stream, known, after, stream.adapter.steps, waits)
        for waiting, waited in zip(batch, waits, strict=True):
            part = slice(place, place := place + len(waiting.images))
            scores = None if shift is None or not waiting.shift else shift[part].cpu().numpy()
            answers.append(Answer(after[part], before[part], scores, waited=waited, **known))
        return answers

    def _shadow(self, stream: Stream, images: Tensor, known: Tensor | None) -> tuple[Drift | None, Tensor]:
        """The drift of the stream with these images, and the source model's logits, asked for only if nobody did."""
        watcher = self.served.watcher() if self._streams is None else stream.watcher
        known = stream.adapter.source_logits if known is None else known
        if known is None and (watcher is None or not watcher.knows_logits):
            known = self.served.source_logits(images)
        if watcher is None:
            assert known is not None
            return None, known
        stream.drift, source = watcher.look(images, known)
        return stream.drift, source


def outcome_of(trace: Trace, images: int, stream: Stream) -> str:
    """What became of a batch, in the words of an answer."""
    if stream.frozen:
        return "frozen"
    if trace.stopped in ("left to source", "collapsed", "resting", "guard"):
        return trace.stopped
    waits = trace.stopped == "gathering" or (trace.stopped == "nothing to learn" and stream.adapter.method.learns)
    return "too small a batch" if waits and images < ENOUGH else "adapted"


def _fulfil(futures: Sequence[Future[Any]], compute: Callable[[], Sequence[Any]]) -> None:
    """Give futures their results, or all of them the error; who has gone meanwhile gets nothing."""
    try:
        results = compute()
    except BaseException as error:  # the thread must go on, whatever a batch does
        for future in futures:
            if future.set_running_or_notify_cancel():
                future.set_exception(error)
        return
    for future, result in zip(futures, results, strict=True):
        if future.set_running_or_notify_cancel():
            future.set_result(result)
