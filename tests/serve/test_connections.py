"""Connections that are slow, silent or endless: each has its limit, and others are answered meanwhile."""

import asyncio
import os
import socket
import subprocess
import time
from contextlib import contextmanager

import numpy as np
import pytest
import requests
import uvicorn
from service import Service, digits, png, settings_in

from ncttt.serve import connections, create_app
from ncttt.serve.connections import Bounded

HEAD = b"POST /predict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: multipart/form-data; boundary=x\r\n"


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    """A service in a thread of this process, with limits of half a second."""
    from threading import Thread

    before, connections.REQUEST_SECONDS = connections.REQUEST_SECONDS, 0.5
    app = create_app(settings_in(tmp_path_factory.mktemp("connections")))
    server = uvicorn.Server(uvicorn.Config(app, http=Bounded, log_level="error"))
    address = socket.create_server(("127.0.0.1", 0), backlog=2048)
    thread = Thread(target=lambda: asyncio.run(server.serve([address])), daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield address.getsockname()[1]
    server.should_exit = True
    thread.join(30)
    connections.REQUEST_SECONDS = before


def answer_to(port: int, *pieces: bytes) -> bytes:
    """All that comes back until the service closes the connection, or for ten seconds."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.settimeout(10)
        answer = b""
        try:
            for piece in pieces:
                connection.sendall(piece)
            while part := connection.recv(65536):
                answer += part
        except (BrokenPipeError, ConnectionResetError):
            pass
        return answer


def test_bodies_that_are_being_read_have_a_most_of_bytes_together(tmp_path):
    service = Service(tmp_path, "--most-bytes", "100000", "--most-reading", "100000")
    noise = png(np.random.default_rng(0).integers(0, 256, (100, 100, 3), np.uint8))
    assert 30_000 < len(noise) < 100_000

    def status() -> int:
        return requests.post(f"{service.url}/predict", files={"image": noise}, timeout=30).status_code

    try:
        assert status() == 200
        with socket.create_connection(("127.0.0.1", int(service.url.rsplit(":", 1)[1]))) as slow:
            slow.sendall(HEAD + b"Content-Length: 99999\r\n\r\n--x\r\n" + b"." * 90_000)
            until = time.monotonic() + 30
            while (found := status()) != 429:
                assert time.monotonic() < until, found
        until = time.monotonic() + 30
        while (found := status()) != 200:  # it is gone
            assert time.monotonic() < until, found
    finally:
        assert service.end() == 0


def is_up(port: int) -> bool:
    files = {"image": png(digits()[0])}
    return requests.post(f"http://127.0.0.1:{port}/predict", files=files, timeout=10).status_code == 200


@pytest.mark.parametrize("begun", [b"", b"POST /pre", HEAD + b"X: y", HEAD + b"Content-Length: 1000\r\n\r\n--x"])
def test_a_request_that_does_not_end_is_refused(port, begun):
    began = time.monotonic()
    answer = answer_to(port, begun)
    assert answer.startswith(b"HTTP/1.1 400")
    assert b"seconds to come" in answer
    assert time.monotonic() - began < 5
    assert is_up(port)


def test_a_second_request_has_its_own_time(port):
    with requests.Session() as session:
        for _ in range(4):
            time.sleep(0.2)
            assert session.get(f"http://127.0.0.1:{port}/healthz").status_code == 200


def test_endless_headers_are_refused(port):
    assert answer_to(port, HEAD + b"X: " + b"y" * 66_000).startswith(b"HTTP/1.1 400")
    assert is_up(port)


@pytest.mark.parametrize(
    "rest",
    [
        b"Content-Length: -5\r\n\r\nabc",
        b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
        b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        b"Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n",
        b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffffff\r\nabc\r\n",
    ],
)
def test_lengths_that_lie_are_refused(port, rest):
    assert answer_to(port, HEAD + rest).startswith(b"HTTP/1.1 400")
    assert is_up(port)


def test_hundreds_of_silent_connections_hold_nobody_up(port):
    silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(400)]
    assert is_up(port)
    for connection in silent:
        connection.close()


@contextmanager
def small_disk(folder):
    """A disk of 400 kB that is gone afterwards."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.skipif(os.geteuid() != 0 or os.uname().sysname != "Linux", reason="only root can mount")
def test_a_full_disk_is_said_and_answers_go_on(tmp_path):
    try:
        disk = small_disk(tmp_path / "states")
        disk.__enter__()
    except subprocess.CalledProcessError:
        pytest.skip("this machine lets nobody mount")
    try:
        service = Service(tmp_path, "--wait-ms", "0", "--save-seconds", "0.05")
        for number in range(30):
            answer = requests.post(
                f"{service.url}/predict", files={"image": png(digits()[number])}, data={"stream": f"s{number % 4}"}
            )
            assert answer.status_code == 200, answer.text
            time.sleep(0.02)
        assert "No space left" in service.log.read_text()
        answer = requests.post(f"{service.url}/streams/s0/freeze")
        assert answer.status_code in (200, 503)
        code = service.end()
        assert code in (0, 1)
        assert "Traceback" not in service.log.read_text()
    finally:
        disk.__exit__(None, None, None)


def test_trailers_and_chunk_extensions_are_limited(port):
    chunked = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
    for endless in (b"0\r\n" + b"X: y\r\n" * 20_000, b"0\r\nX: " + b"y" * 90_000, b"3;" + b"y" * 90_000):
        assert answer_to(port, chunked + b"3\r\nabc\r\n", endless).startswith(b"HTTP/1.1 4")
    assert is_up(port)


def test_a_body_may_come_in_any_number_of_chunks(port):
    image = png(digits()[0])
    head = b'--x\r\nContent-Disposition: form-data; name="image"; filename="a.png"\r\n\r\n'
    body = head + image + b"\r\n--x--\r\n" + b" " * 20_000
    pieces = b"".join(b"1;ignored=1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
    assert len(pieces) > 4 * connections.HEAD_BYTES
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + pieces)
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")
