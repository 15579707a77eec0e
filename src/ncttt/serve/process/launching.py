"""Launching the process of the model, started afresh: a fork of one with threads would freeze their locks."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context, reduction
from typing import Any

from ncttt.base.errors import InputError
from ncttt.base.pools import deaf_to_interrupts
from ncttt.serve.process.messages import receive
from ncttt.serve.settings import Settings


class ModelProcess:
    """The process that owns the model, and this end of the link to it; one that has ended can be started again.

    It inherits the lock on the folder of states, because it is what writes there.
    """

    def __init__(self, settings: Settings, lock: int):
        self._settings, self._lock = settings, lock
        self.start()

    def start(self) -> None:
        """Start the process, which takes seconds until it has loaded the model."""
        self.link, theirs = socket.socketpair()
        with theirs, deaf_to_interrupts():
            arguments = (theirs, self._settings, _Inherited(self._lock))
            self._process = get_context("spawn").Process(target=_run, args=arguments, name="model")
            self._process.start()

    def first_word(self) -> Any:
        """What the process says once it has loaded the model, or the error that kept it from that."""
        try:
            with self.link.makefile("rb") as file:  # it says no more before it is asked something
                told = receive(file)
        except (EOFError, OSError):
            raise InputError(f"the process of the model has ended before it was ready ({self.end()})") from None
        if isinstance(told, Exception):
            raise told
        return told

    @property
    def number(self) -> int:
        """What the system calls it."""
        assert self._process.pid is not None
        return self._process.pid

    def end(self) -> str:
        """How it has ended, waiting for that: `signal 9` or `exit code 1`."""
        self._process.join()
        code = self._process.exitcode or 0
        return f"signal {-code}" if code < 0 else f"exit code {code}"

    def kill(self) -> None:
        """End it at once, if it has not."""
        self._process.kill()
        self._process.join()


@contextmanager
def model_process(settings: Settings, lock: int) -> Iterator[ModelProcess]:
    """A process that loads the model, and has ended after the `with` block."""
    process = ModelProcess(settings, lock)
    try:
        yield process
    finally:
        process.kill()


class _Inherited:
    """A file descriptor that another process has under a number of its own."""

    def __init__(self, number: int):
        self._number = number

    def __reduce__(self) -> tuple[Any, ...]:
        return _taken, (reduction.DupFd(self._number),)


def _taken(duplicate: Any) -> int:
    return duplicate.detach()


def _run(link: socket.socket, settings: Settings, lock: int) -> None:
    from ncttt.serve.process.child import run  # imports torch, as the process that starts this one does meanwhile

    run(link, settings)
