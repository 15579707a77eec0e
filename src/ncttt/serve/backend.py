"""What the routes of a service ask of those who predict: a worker of this process, or replicas on other machines."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Protocol

import numpy as np

from ncttt.serve.dashboard.history import History
from ncttt.serve.metrics import Metrics
from ncttt.serve.served import Served
from ncttt.serve.settings import Settings


class Backend(Protocol):
    """Answers the requests of a service, from `start` to `close`."""

    settings: Settings
    metrics: Metrics
    served: Served
    history: History

    @property
    def alive(self) -> bool:
        """Whether it works at all."""
        ...

    @property
    def ready(self) -> bool:
        """Whether requests are taken now."""
        ...

    def start(self) -> None:
        """Begin to work."""
        ...

    def close(self) -> None:
        """Answer all that waits and end."""
        ...

    def submit(self, stream: str, images: np.ndarray, shift: bool = False) -> Future[Any]:
        """Let images of a stream, uint8 (N, S, S, 3), wait for their `Answer`."""
        ...

    def call(self, function: Callable[[Any], Any]) -> Future[Any]:
        """Let a function be called with the streams."""
        ...

    def text(self) -> bytes:
        """The metrics in the format of Prometheus."""
        ...
