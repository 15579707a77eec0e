"""Load for a service: clients that each wait for an answer before they ask again, in one process that costs little."""

from __future__ import annotations

import asyncio
import io
import json
import time
from collections.abc import Callable
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np
import uvloop
from PIL import Image

HEAD = "POST /predict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: "


class Load(NamedTuple):
    """What clients have seen: answers with `client_ms` and the number of their `request`, seconds and cores."""

    answers: list[dict[str, Any]]
    seconds: float
    cores: float


class Client(asyncio.Protocol):
    """One connection; bodies are kept as they come, and read after the measurement."""

    def __init__(self, following: Callable[[], tuple[int, bytes] | None], seen: list[tuple[int, float, bytes]]):
        self._following, self._seen, self.ended = following, seen, asyncio.Event()
        self._got, self._end = b"", 0

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._ask()

    def data_received(self, data: bytes) -> None:
        self._got += data
        if not self._end and (split := self._got.find(b"\r\n\r\n")) >= 0:
            head = self._got[:split].lower()
            place = head.index(b"content-length: ") + 16
            self._start = split + 4
            self._end = self._start + int(head[place:].split(b"\r\n", 1)[0])
        if not self._end or len(self._got) < self._end:
            return
        if not self._got.startswith(b"HTTP/1.1 200"):
            raise SystemExit(self._got.decode())
        self._seen.append((self._number, time.perf_counter() - self._asked, self._got[self._start :]))
        self._got, self._end = b"", 0
        self._ask()

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended.set()

    def _ask(self) -> None:
        request = self._following()
        if request is None:
            self._transport.close()
            return
        self._number, content = request
        self._asked = time.perf_counter()
        self._transport.write(content)


def send(
    port: int,
    requests: list[bytes],
    clients: int,
    seconds: float = 3600.0,
    most: int = 2**62,
    each_second: Callable[[], Any] = lambda: None,
) -> Load:
    """Send requests, over and over, for so many seconds or until there were so many; one client keeps their order."""
    return uvloop.run(_send(port, requests, clients, seconds, most, each_second))


async def _send(
    port: int, requests: list[bytes], clients: int, seconds: float, most: int, each_second: Callable[[], Any]
) -> Load:
    left, following = most, cycle(enumerate(requests))
    seen: list[tuple[int, float, bytes]] = []
    began, cpu = time.perf_counter(), time.process_time()

    def request() -> tuple[int, bytes] | None:
        nonlocal left
        left -= 1
        return None if left < 0 or time.perf_counter() - began > seconds else next(following)

    async def watch() -> None:
        while True:
            each_second()
            await asyncio.sleep(1)

    loop = asyncio.get_running_loop()
    made = [await loop.create_connection(lambda: Client(request, seen), "127.0.0.1", port) for _ in range(clients)]
    watching = asyncio.create_task(watch())
    await asyncio.gather(*(protocol.ended.wait() for _, protocol in made))
    took, cpu = time.perf_counter() - began, time.process_time() - cpu
    watching.cancel()
    answers = [{**json.loads(body), "client_ms": 1000 * wait, "request": number} for number, wait, body in seen]
    return Load(answers, took, cpu / took)


def encoded(image: np.ndarray, stream: str) -> bytes:
    """A whole request for an image, ready to be sent."""
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "PNG")
    field = f'--b\r\nContent-Disposition: form-data; name="stream"\r\n\r\n{stream}\r\n'.encode()
    file = b'--b\r\nContent-Disposition: form-data; name="image"; filename="a.png"\r\n\r\n' + buffer.getvalue()
    body = field + file + b"\r\n--b--\r\n"
    return f"{HEAD}{len(body)}\r\n\r\n".encode() + body
