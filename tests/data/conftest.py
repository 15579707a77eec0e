"""What the tests of the data sets share: the folder beside the project, small files to read."""

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from PIL import Image


@pytest.fixture(scope="session")
def shared() -> Path:
    folder = Path(__file__).resolve().parents[2].parent / "shared"
    if not folder.is_dir():
        pytest.skip("no shared folder beside the project")
    return folder


@pytest.fixture
def pictures() -> Callable[..., np.ndarray]:
    def make(count: int, size: int = 32, seed: int = 0) -> np.ndarray:
        return np.random.default_rng(seed).integers(0, 256, (count, size, size, 3), dtype=np.uint8)

    return make


@pytest.fixture
def class_folder(tmp_path: Path) -> Path:
    """Folder with classes `cat` (three images) and `dog` (two), 40 x 30 pixels, colours by class and number."""
    for name, red in (("cat", 50), ("dog", 200)):
        (tmp_path / "pets" / name).mkdir(parents=True)
        for number in range(3 if name == "cat" else 2):
            picture = Image.new("RGB", (40, 30), (red, 10 * number, 0))
            picture.save(tmp_path / "pets" / name / f"{number}.png")
    return tmp_path / "pets"


class Server:
    """A web server on this machine for a few files; it can break off, hang up, forbid ranges, send others, or fail."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.break_after: list[int] = []
        self.ranges = True
        self.wrong_ranges = False
        self.failures = 0
        self.failure = 503
        self.hang_ups = 0
        self.asked: list[str | None] = []
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}/{name}"

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


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.close()
