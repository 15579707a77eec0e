"""What the routes of a service ask of those who predict: a worker here or in a process of its own, or replicas."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Protocol

import numpy as np

from ncttt.serve.journal import Journal
from ncttt.serve.offered import Offered
from ncttt.serve.settings import Settings


class Backend(Protocol):
    """Answers the requests of a service, from `start` to `close`."""

    settings: Settings
    journal: Journal

    @property
    def served(self) -> Offered:
        """What is served."""
        ...

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
        """Let a function, which may have to be pickled, be called with the streams."""
        ...

    def text(self) -> bytes:
        """The metrics in the format of Prometheus."""
        ...
