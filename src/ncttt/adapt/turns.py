"""Turns: threads that share one adapter use it one after another, and each leaves it as the next may expect it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from threading import RLock
from typing import Any, TypeVar

from ncttt.model.modes import buffers_kept

Function = TypeVar("Function", bound=Callable[..., Any])


class Turn:
    """Lets one thread in at a time; a copy of it is another one."""

    def __init__(self) -> None:
        self._lock = RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def __reduce__(self) -> tuple[type[Turn], tuple[()]]:
        return Turn, ()


def in_turn(method: Function) -> Function:
    """A method of an object with a `_turn`, which threads call one after another."""

    @wraps(method)
    def waiting(self: Any, *args: Any, **settings: Any) -> Any:
        with self._turn:
            return method(self, *args, **settings)

    return waiting  # type: ignore[return-value]


def leaving_buffers(method: Function) -> Function:
    """A method of an adapter that leaves all buffers of its classifier alone but those that move with the stream."""

    @wraps(method)
    def leaving(self: Any, *args: Any, **settings: Any) -> Any:
        with buffers_kept(self.model.classifier, self._state.snapshot.live.values()):
            return method(self, *args, **settings)

    return leaving  # type: ignore[return-value]
