"""Messages between the process with the address and that of the model: pickles, each after its length.

Both ends belong to one service, so nobody else writes what is unpickled.
"""

from __future__ import annotations

import pickle  # nosec B403
from asyncio import StreamReader
from collections.abc import Callable
from struct import Struct
from typing import Any, BinaryIO, NamedTuple

import numpy as np

LENGTH = Struct("!Q")


class Images(NamedTuple):
    """Images of a stream, uint8 (N, S, S, 3), to be predicted, and when they arrived on the clock of all processes."""

    number: int
    stream: str
    images: np.ndarray
    shift: bool
    arrived: float


class Operation(NamedTuple):
    """A function to be called with the streams."""

    number: int
    function: Callable[[Any], Any]


class Turn(NamedTuple):
    """What a worker tells between two batches: images in hand, notes for the journal, and what came of requests.

    A note is the name of a method of the journal with its arguments; what came of a request is its number with a
    result or an error.
    """

    in_hand: int
    notes: list[tuple[str, tuple[Any, ...]]]
    done: list[tuple[int, Any, Exception | None]]


END = None  # the last message to a worker: answer what waits, save the streams and end


def packed(message: Any) -> bytes:
    """A message as it is sent."""
    content = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    return LENGTH.pack(len(content)) + content


def receive(file: BinaryIO) -> Any:
    """The next message; an `EOFError` if the other process is gone."""
    (length,) = LENGTH.unpack(_exactly(file, LENGTH.size))
    return pickle.loads(_exactly(file, length))  # nosec B301


async def next_of(reader: StreamReader) -> Any:
    """The next message, for an event loop; an `IncompleteReadError`, which is an `EOFError`, at the end."""
    (length,) = LENGTH.unpack(await reader.readexactly(LENGTH.size))
    return pickle.loads(await reader.readexactly(length))  # nosec B301


def _exactly(file: BinaryIO, length: int) -> bytes:
    content = file.read(length)
    if len(content) < length:
        raise EOFError
    return content
