"""Stopping on request: a signal is noticed at the next safe place, not in the middle of a step."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn


class Request:
    """Whether a signal has asked to stop, and which."""

    signal: int | None = None

    def receive(self, number: int, frame: FrameType | None) -> None:
        """Note the signal. A second Ctrl-C interrupts at once; launchers may well send SIGTERM twice."""
        self.signal = number
        if number == signal.SIGINT:
            signal.signal(number, signal.default_int_handler)

    def obey(self) -> NoReturn:
        """Leave by the exception that the signal stands for; SIGTERM, if it was another process that got one."""
        if self.signal == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(128 + (self.signal or signal.SIGTERM))


@contextmanager
def listening() -> Iterator[Request]:
    """Turn SIGTERM and SIGINT into a `Request` inside the `with` block; only the main thread can listen."""
    request = Request()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    before = {number: signal.signal(number, request.receive) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
