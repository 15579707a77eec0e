"""A web server on this machine for a few files."""

import socket
import ssl
import struct
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Server:
    """Can break off, hang up, forbid ranges, send others, redirect or fail; with a certificate it speaks HTTPS."""

    def __init__(self, certificate: Path | None = None) -> None:
        self.files: dict[str, bytes] = {}
        self.elsewhere: dict[str, str] = {}
        self.break_after: list[int] = []
        self.ranges = True
        self.wrong_ranges = False
        self.failures = 0
        self.failure = 503
        self.hang_ups = 0
        self.asked: list[str | None] = []
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._scheme = "https" if certificate else "http"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self._http.socket = context.wrap_socket(self._http.socket, server_side=True)
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()

    def url(self, name: str) -> str:
        return f"{self._scheme}://127.0.0.1:{self._http.server_address[1]}/{name}"

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()

    def _handler(server) -> type[BaseHTTPRequestHandler]:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.answer(self)

            def log_message(self, *_: object) -> None:
                pass

        return Handler

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        wanted = request.headers.get("Range")
        self.asked.append(wanted)
        if self.hang_ups:
            self.hang_ups -= 1
            # Closing at once with this set sends a reset, as a crashed server does.
            request.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            request.connection.close()
            return
        if place := self.elsewhere.get(request.path.strip("/")):
            request.send_response(302)
            request.send_header("Location", place)
            request.send_header("Content-Length", "0")
            request.end_headers()
            return
        body = self.files.get(request.path.strip("/"))
        if self.failures or body is None:
            self.failures -= bool(self.failures)
            request.send_error(404 if body is None else self.failure)
            return
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and self.ranges else 0
        start += 1 if wanted and self.wrong_ranges else 0
        if start >= len(body):
            request.send_response(416)
            request.send_header("Content-Range", f"bytes */{len(body)}")
            request.send_header("Content-Length", "0")
            request.end_headers()
            return
        request.send_response(206 if start else 200)
        if start:
            request.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        request.send_header("Content-Length", str(len(body) - start))
        request.end_headers()
        stop = self.break_after.pop(0) if self.break_after else len(body)
        request.wfile.write(body[start : start + stop])
