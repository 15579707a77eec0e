"""What runs in the process of the model: a worker on its main thread, and a thread that reads what is asked of it."""

from __future__ import annotations

import gc
import os
import pickle  # nosec B403
import signal
import socket
import sys
import traceback
import warnings
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import Any

from ncttt.base.errors import InputError
from ncttt.serve.batching import Waiting
from ncttt.serve.process.messages import END, Images, Operation, Turn, packed, receive
from ncttt.serve.served import Served
from ncttt.serve.settings import Settings
from ncttt.serve.worker import Worker

EXPECTED = (InputError, OSError)  # answered by a sentence, without a traceback


def run(link: socket.socket, settings: Settings) -> None:
    """Load the model, say what is offered or why it cannot be, and work until asked to end."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # one for all processes of a service is answered by the other one
    told = Told(link)
    try:
        served = Served(settings)
        worker = Worker(settings, served, told.journal, lambda line: print(f"ncttt: {line}", file=sys.stderr))
    except Exception as error:
        link.sendall(packed(_sendable(error)))
        return
    gc.collect()
    gc.freeze()  # what lives as long as the service: to look through it again stops all requests for 0.2 seconds
    warnings.showwarning = lambda message, *rest: print(f"ncttt: {message}", file=sys.stderr)
    link.sendall(packed(served.offered()))
    Thread(target=_read, args=(link, worker, told), name="reader", daemon=True).start()
    worker.run(told.turn)
    worker.close()
    told.turn(0)


class Told:
    """Collects what the other process is to be told, and sends it in one message a turn."""

    def __init__(self, link: socket.socket):
        self._link = link
        self._notes: deque[tuple[str, tuple[Any, ...]]] = deque()
        self._done: deque[tuple[int, Any, Exception | None]] = deque()
        self.journal: Any = _Journal(self._notes)

    def answered(self, number: int, future: Future[Any]) -> None:
        """Something came of a request."""
        error = future.exception()
        if error is None:
            self._done.append((number, future.result(), None))
            return
        if not isinstance(error, EXPECTED):
            traceback.print_exception(error)
        self._done.append((number, None, _sendable(error)))

    def turn(self, in_hand: int) -> None:
        """Send what there is."""
        turn = Turn(in_hand, _emptied(self._notes), _emptied(self._done))
        with suppress(BrokenPipeError):  # the thread that reads notices, too
            self._link.sendall(packed(turn))


class _Journal:
    """Looks like a `Journal`; the true one is in the other process."""

    def __init__(self, notes: deque[tuple[str, tuple[Any, ...]]]):
        self._notes = notes

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *arguments: self._notes.append((name, arguments))


def _read(link: socket.socket, worker: Worker, told: Told) -> None:
    try:
        with link.makefile("rb") as file:
            while (message := receive(file)) is not END:
                _asked(message, worker, told)
    except (EOFError, OSError):
        os._exit(1)  # the other process was killed, and this one with it: nobody is left to be answered
    worker.queue.close()


def _asked(message: Images | Operation, worker: Worker, told: Told) -> None:
    if isinstance(message, Images):
        waiting = Waiting(message.stream, message.images, message.shift, message.arrived)
        worker.queue.put(waiting)  # it has room: the other process counts what waits
        future = waiting.future
    else:
        future = worker.call(message.function)
    future.add_done_callback(partial(told.answered, message.number))


def _emptied(given: deque[Any]) -> list[Any]:
    return [given.popleft() for _ in range(len(given))]


def _sendable(error: BaseException) -> Exception:
    """The error, or one with its words if it cannot be sent."""
    with suppress(Exception):
        pickle.loads(pickle.dumps(error))  # nosec B301
        if isinstance(error, Exception):
            return error
    return RuntimeError(f"{type(error).__name__}: {error}")
