"""History: what the last batches of each stream were like, bounded in memory, for the charts of the dashboard.

The thread that works adds to it, others read. A point is a batch, or all batches within a quarter of a second, so that
720 points reach back at least three minutes whatever the traffic. Only streams in memory have a history.
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from ncttt.serve.dashboard.points import Event, Point, Shown, of_point, of_shown
from ncttt.serve.dashboard.thumbnails import thumbnail

if TYPE_CHECKING:
    from ncttt.serve.drift import Drift
    from ncttt.serve.worker import Answer

MOST_POINTS, MOST_EVENTS = 720, 100
OPERATED = ("reset", "frozen", "thawed", "rolled back")
SECONDS = 0.25  # within which batches become one point, and images are shown once
AT_ONCE = 4  # images that are shown of a request


@dataclass(slots=True)
class Record:
    """All that is kept of one stream."""

    points: deque[Point]
    events: deque[Event]
    shown: deque[Shown]
    total: int = 0
    batch: int = 0  # of the last request, where batches are formed elsewhere
    alarm: bool = False
    shown_at: float = float("-inf")


class History:
    """The last batches, events and thumbnails of no more than so many streams; 0 `most_shown` keeps no thumbnail."""

    def __init__(self, most_streams: int, most_shown: int, on_forgotten: Callable[[str], None] = lambda stream: None):
        self._most, self._most_shown, self._on_forgotten = most_streams, most_shown, on_forgotten
        self._records: OrderedDict[str, Record] = OrderedDict()
        self._lock = Lock()
        self._number = int(time.time() * 1000)  # above all of a service that ran before, as pages may still ask

    def batch(self, stream: str, known: Mapping[str, Any], probabilities: np.ndarray) -> None:
        """Add a batch: what is known of it, and its adapted probabilities (B, classes)."""
        with self._lock:
            record = self._record(stream)
            self._add(record, known, probabilities.argmax(1))
            self._undone(record, known["trace"])

    def request(self, stream: str, answer: Answer) -> None:
        """Add a request whose batch was formed elsewhere; what happened to a batch is told by its first request."""
        adapted, source = answer.probabilities.argmax(1), answer.source_probabilities.argmax(1)
        known = {"images": len(adapted), "changed": int((adapted != source).sum()), "trace": answer.trace}
        known |= {name: getattr(answer, name) for name in ("outcome", "version", "drift")}
        with self._lock:
            record = self._record(stream)
            first, record.batch = record.batch != answer.batch, answer.batch
            self._add(record, known if first else known | {"trace": replace(answer.trace, steps=0)}, adapted)
            if first:
                self._undone(record, answer.trace)

    def scored(self, stream: str, adapted: int, source: int, labels: int = 1) -> bool:
        """Add labels that came, and how many of them each model had predicted; False if it went to disk meanwhile."""
        with self._lock:
            if stream not in self._records:
                return False
            point = self._point(self._records[stream])
            point.labels += labels
            point.adapted += adapted
            point.source += source
            return True

    def event(self, stream: str, kind: str, text: str) -> None:
        """Add what happened to a stream."""
        with self._lock:
            self._add_event(self._record(stream), kind, text)

    def operated(self, stream: str, cause: str) -> None:
        """Add what an operator did: `reset`, `frozen`, `thawed` or `rolled back to 7`."""
        self.event(stream, next(kind for kind in OPERATED if cause.startswith(kind)), cause)

    def show(self, stream: str, images: np.ndarray, answer: Answer, truths: np.ndarray | None = None) -> None:
        """Keep the first images, uint8 (N, H, W, 3), of a request, unless others were kept a moment ago."""
        now = time.monotonic()
        with self._lock:
            record = self._records.get(stream)
            if record is None or not self._most_shown or now - record.shown_at < SECONDS:
                return
            record.shown_at = now
            for place, image in enumerate(images[: min(AT_ONCE, self._most_shown)]):
                both = (answer.probabilities[place], answer.source_probabilities[place])
                adapted, source = ((int(each.argmax()), float(each.max())) for each in both)
                truth = None if truths is None else int(truths[place])
                record.shown.append(Shown(self._next(), thumbnail(image), adapted, source, truth))

    def forget(self, stream: str) -> None:
        """Drop all that is kept of a stream."""
        with self._lock:
            self._records.pop(stream, None)

    def told(self, stream: str, since: int, classes: tuple[str, ...]) -> dict[str, Any]:
        """What came at or after a number, as JSON values; of a stream without a history, nothing."""
        with self._lock:
            record = self._records.get(stream) or self._new()
            first = record.points[0].number if record.points else 0
            newest = record.points[-1].number if record.points else 0
            points = [point for point in record.points if point.number >= since]
            growing = [of_point(points.pop())] if points else []  # the only one that still changes
            events = [asdict(event) for event in record.events if event.number >= since]
            shown = [each for each in record.shown if each.number >= since]
        told: dict[str, Any] = {"stream": stream, "first": first, "next": newest}
        told["points"] = [of_point(point) for point in points] + growing
        return told | {"events": events, "shown": [of_shown(each, classes) for each in shown]}

    def _next(self) -> int:
        """A number that nothing has had before, in any record."""
        self._number += 1
        return self._number

    def _new(self) -> Record:
        return Record(deque(maxlen=MOST_POINTS), deque(maxlen=MOST_EVENTS), deque(maxlen=self._most_shown))

    def _record(self, stream: str) -> Record:
        record = self._records.get(stream)
        if record is None:
            record = self._records[stream] = self._new()
        self._records.move_to_end(stream)
        while len(self._records) > self._most:
            self._on_forgotten(self._records.popitem(last=False)[0])
        return record

    def _point(self, record: Record) -> Point:
        """The newest point, or a new one if that began a while ago."""
        now = time.monotonic()
        if not record.points or now - record.points[-1].began >= SECONDS:
            before = record.points[-1] if record.points else None
            record.points.append(Point(self._next(), now, time.time(), total=record.total))
            if before is not None:  # until a batch comes
                last = record.points[-1]
                last.drift, last.alarm, last.version = before.drift, before.alarm, before.version
        return record.points[-1]

    def _add(self, record: Record, known: Mapping[str, Any], classes: np.ndarray) -> None:
        record.total += known["images"]
        point = self._point(record)
        point.images += known["images"]
        point.total = record.total
        point.changed += known["changed"]
        point.steps += known["trace"].steps
        point.classes.update(classes.tolist())
        point.outcome, point.version = known["outcome"], known["version"]
        if known["drift"] is not None:
            self._drifted(record, point, known["drift"])

    def _drifted(self, record: Record, point: Point, drift: Drift) -> None:
        point.drift, point.alarm = drift.score, drift.alarm
        if drift.alarm != record.alarm:
            record.alarm = drift.alarm
            said = (
                f"drift alarm: the {drift.reason} is unlike that of source images" if drift.alarm else "no drift alarm"
            )
            self._add_event(record, "alarm" if drift.alarm else "calm", said)

    def _undone(self, record: Record, trace: Any) -> None:
        if trace.stopped == "collapsed":
            self._add_event(record, "collapse", "learning had made predictions worse, and was undone")
        elif trace.reset:
            self._add_event(record, "reset", "the method went back to the source model")
        if trace.fell_back:
            self._add_event(record, "fallback", "a batch was undone because something was not finite")

    def _add_event(self, record: Record, kind: str, text: str) -> None:
        record.events.append(Event(self._next(), time.time(), record.total, kind, text))
