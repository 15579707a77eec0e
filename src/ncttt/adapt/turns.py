"""Turns: threads that share one adapter use it one after another."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from threading import RLock
from typing import Any, TypeVar

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
