"""Metrics of a service for Prometheus, in a registry of its own; a stream that goes to disk takes its series along."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Summary, generate_latest

from ncttt.serve.usage import Usage

SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)
IMAGES = (1, 2, 4, 8, 16, 32, 64, 128)


class Metrics:
    """What is counted, with memory and so on of this process and `others`, by their numbers."""

    def __init__(self, others: Callable[[], Sequence[int]] = tuple) -> None:
        own = self.registry = CollectorRegistry()
        self.requests = Counter("ncttt_requests", "Requests by route and status.", ["route", "status"], registry=own)
        self._images = Counter("ncttt_images", "Images that were predicted.", ["stream"], registry=own)
        self._agreed = Counter(
            "ncttt_agreements", "Images for which both models predict the same class.", ["stream"], registry=own
        )
        self._classes = Counter(
            "ncttt_predictions", "Predictions of the adapted model by class.", ["stream", "label"], registry=own
        )
        self._entropy = Summary("ncttt_entropy", "Entropy of the adapted predictions.", ["stream"], registry=own)
        self._drift = Gauge("ncttt_drift_score", "Drift score of the last images.", ["stream"], registry=own)
        self._steps = Counter("ncttt_steps", "Adaptation steps that were taken.", ["stream"], registry=own)
        self._outcomes = Counter(
            "ncttt_batches", "Batches by what became of them.", ["stream", "outcome"], registry=own
        )
        self._skipped = Counter(
            "ncttt_skipped_steps", "Steps that the latency budget had no time for.", ["stream"], registry=own
        )
        self._resets = Counter(
            "ncttt_resets", "Returns of a stream to the source model by cause.", ["stream", "cause"], registry=own
        )
        self._fallbacks = Counter(
            "ncttt_fallbacks", "Batches undone because something was not finite.", ["stream"], registry=own
        )
        self._versions = Gauge("ncttt_state_version", "Version of a stream's state.", ["stream"], registry=own)
        self._saved = Gauge("ncttt_state_saved", "Newest version that is on disk.", ["stream"], registry=own)
        self._right = Counter(
            "ncttt_feedback_right", "Predictions that labels confirmed.", ["stream", "predicted_by"], registry=own
        )
        self._scored = Counter("ncttt_feedback", "Predictions that labels came for.", ["stream"], registry=own)
        self._batch = Histogram("ncttt_batch_images", "Images in a batch.", buckets=IMAGES, registry=own)
        self._waits = Histogram(
            "ncttt_waiting_seconds", "Time that a request waited for its batch.", buckets=SECONDS, registry=own
        )
        self._seconds = Histogram(
            "ncttt_model_seconds", "Time that a batch took in the model.", buckets=SECONDS, registry=own
        )
        self._held = Gauge("ncttt_streams", "Streams by where they are.", ["place"], registry=own)
        self._queue = Gauge("ncttt_queue_images", "Images that wait.", registry=own)
        self._queue_limit = Gauge("ncttt_queue_limit_images", "Images that may wait at most.", registry=own)
        own.register(Usage(others))
        self._of_streams = (
            self._images,
            self._agreed,
            self._classes,
            self._entropy,
            self._drift,
            self._steps,
            self._outcomes,
            self._skipped,
            self._resets,
            self._fallbacks,
            self._versions,
            self._saved,
            self._right,
            self._scored,
        )

    def batch(
        self, stream: str, known: Mapping[str, Any], probabilities: np.ndarray, classes: Sequence[str], steps: int
    ) -> None:
        """Count a batch: what is known of it, and its adapted probabilities (B, classes)."""
        trace, images = known["trace"], known["images"]
        self._batch.observe(images)
        self._seconds.observe(known["seconds"])
        self._images.labels(stream).inc(images)
        self._agreed.labels(stream).inc(images - known["changed"])
        for index, count in zip(*np.unique(probabilities.argmax(1), return_counts=True), strict=True):
            self._classes.labels(stream, classes[index]).inc(int(count))
        logs = np.log(np.clip(probabilities, 1e-30, None))
        entropies = self._entropy.labels(stream)
        for entropy in (-(probabilities * logs).sum(1)).tolist():
            entropies.observe(entropy)
        if known["drift"] is not None:
            self._drift.labels(stream).set(known["drift"].score)
        self._steps.labels(stream).inc(trace.steps)
        self._outcomes.labels(stream, known["outcome"]).inc()
        if known["outcome"] == "adapted":  # other batches would have taken no steps anyway
            self._skipped.labels(stream).inc(steps - known["steps_allowed"])
        self._fallbacks.labels(stream).inc(trace.fell_back)
        if trace.stopped == "collapsed" or trace.reset:
            self.reset(stream, "method" if trace.reset else "collapse")

    def reset(self, stream: str, cause: str) -> None:
        """Count a return of a stream to the source model."""
        self._resets.labels(stream, cause).inc()

    def waited(self, waits: Sequence[float]) -> None:
        """Count the seconds that requests have waited."""
        for seconds in waits:
            self._waits.observe(seconds)

    def scored(self, stream: str, adapted: bool, source: bool) -> None:
        """Count a label that came, and which model was right."""
        self._scored.labels(stream).inc()
        self._right.labels(stream, "adapted").inc(adapted)
        self._right.labels(stream, "source").inc(source)

    def streams(self, count: int, hot: Sequence[tuple[str, int, int]]) -> None:
        """Note how many streams there are; of those in memory the name, the version and the newest on disk."""
        self.held(len(hot), count - len(hot))
        for stream, version, saved in hot:
            self._versions.labels(stream).set(version)
            self._saved.labels(stream).set(saved)

    def held(self, memory: int, disk: int) -> None:
        """Note how many streams are where."""
        self._held.labels("memory").set(memory)
        self._held.labels("disk").set(disk)

    def forget(self, stream: str) -> None:
        """Drop all series of a stream."""
        for metric in self._of_streams:
            metric.remove_by_labels({"stream": stream})

    def waiting(self, images: int, most: int) -> None:
        """Note how many images wait, and how many may."""
        self._queue.set(images)
        self._queue_limit.set(most)

    def text(self) -> bytes:
        """All metrics in the format of Prometheus."""
        return generate_latest(self.registry)
