"""Connections: the head of a request must come in time and be short, or its connection is closed."""

from __future__ import annotations

from asyncio import TimerHandle, Transport

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_SECONDS = 60.0  # from the connection, or the first byte of a further request, to the end of its headers
HEAD_BYTES = 1 << 16


class Bounded(HttpToolsProtocol):
    """Uvicorn's protocol, which waits for headers forever, and takes any number of them."""

    _reading = True  # the head of a request, or waiting for the first one
    _bytes = 0
    _timer: TimerHandle | None = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._timer = self.loop.call_later(HEAD_SECONDS, transport.close)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if not self._reading or self.transport.is_closing():
            return
        self._bytes += len(data)
        if self._bytes > HEAD_BYTES:
            self.send_400_response(f"headers have at most {HEAD_BYTES:,} bytes")
        elif self._timer is None:
            self._timer = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def on_message_begin(self) -> None:
        self._reading = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._reading, self._bytes = False, 0
        self._forget_timer()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_timer()
        super().connection_lost(exc)

    def _forget_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
