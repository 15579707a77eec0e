"""Connections: a request must come in time and its head be short, or its connection is closed."""

from __future__ import annotations

from asyncio import TimerHandle, Transport

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

REQUEST_SECONDS = 60.0  # from the connection, or the first byte of a further request, to the last byte of its body
HEAD_BYTES = 1 << 16


class Bounded(HttpToolsProtocol):
    """Uvicorn's protocol, which waits for requests forever, and takes any number of headers."""

    _finished = False
    _bytes = 0  # that were not the body's: headers, and what a body in chunks has between and behind them
    _timer: TimerHandle | None = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._timer = self.loop.call_later(REQUEST_SECONDS, self._late)

    def data_received(self, data: bytes) -> None:
        self._bytes += len(data)
        super().data_received(data)
        if self._finished or self.transport.is_closing():
            return
        if self._bytes > HEAD_BYTES:
            self.send_400_response(f"headers have at most {HEAD_BYTES:,} bytes")
        elif self._timer is None:
            self._timer = self.loop.call_later(REQUEST_SECONDS, self._late)

    def on_message_begin(self) -> None:
        self._finished = False
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._bytes = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._bytes = max(0, self._bytes - len(body))
        super().on_body(body)

    def on_chunk_complete(self) -> None:
        """Begin to count again, because a body may come in any number of chunks."""
        self._bytes = 0

    def on_message_complete(self) -> None:
        self._finished, self._bytes = True, 0
        self._forget_timer()
        super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_timer()
        super().connection_lost(exc)

    def _late(self) -> None:
        self.send_400_response(f"a request has {REQUEST_SECONDS:g} seconds to come; this one had not ended by then")

    def _forget_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
