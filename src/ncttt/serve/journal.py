"""The journal of a worker: what it has done goes into the metrics and into the histories of the streams."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ncttt.serve.dashboard.history import History
from ncttt.serve.metrics import Metrics
from ncttt.serve.settings import Settings


class Journal:
    """Is told by a worker of batches and streams; `classes` are names, `processes` the numbers of others, if any."""

    def __init__(self, settings: Settings, classes: Sequence[str], processes: Callable[[], Sequence[int]] = tuple):
        self.metrics, self._classes = Metrics(processes), classes
        self.history = History(settings.hot_streams, settings.most_shown, self.metrics.forget)

    def batch(
        self, stream: str, known: Mapping[str, Any], probabilities: np.ndarray, steps: int, waits: Sequence[float]
    ) -> None:
        """Add a batch: what is known of it, adapted probabilities (B, classes), and how long its requests waited."""
        self.metrics.batch(stream, known, probabilities, self._classes, steps)
        self.metrics.waited(waits)
        self.history.batch(stream, known, probabilities)

    def held(self, streams: int, hot: Sequence[tuple[str, int, int]]) -> None:
        """Note how many streams there are; of those in memory the name, the version and the newest on disk."""
        self.metrics.streams(streams, hot)

    def operated(self, stream: str, cause: str) -> None:
        """Add what an operator did."""
        self.history.operated(stream, cause)

    def forget(self, stream: str) -> None:
        """Drop all that is kept of a stream."""
        self.metrics.forget(stream)
        self.history.forget(stream)
