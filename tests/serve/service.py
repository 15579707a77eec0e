"""A service for tests: in this process, or as a process of its own that can be killed."""

import base64
import io
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from starlette.testclient import TestClient

import ncttt
from ncttt.serve import Settings, create_app

MODEL = "digits-small-ncttt"
HERE = "http://127.0.0.1"


@cache
def digits(corruption: str = "contrast", severity: int = 3) -> np.ndarray:
    """Test digits, uint8 (N, 32, 32, 3); `clean` is no corruption."""
    shift = {} if corruption == "clean" else {"corruption": corruption, "severity": severity}
    return np.asarray(ncttt.data.load("digits", "test", **shift).images)


@cache
def labels() -> np.ndarray:
    return np.asarray(ncttt.data.load("digits", "test").labels)


def png(pixels: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


def text(pixels: np.ndarray) -> str:
    return base64.b64encode(png(pixels)).decode()


def settings_in(folder: Path, **settings: Any) -> Settings:
    return Settings(**{"model": MODEL, "state": str(folder / "states"), "wait_ms": 0.0, "threads": 1, **settings})


@contextmanager
def client_of(folder: Path, token: str | None = None, **settings: Any) -> Iterator[TestClient]:
    """A client of a service in this process."""
    app = create_app(settings_in(folder, **settings), token=token)
    with TestClient(app, base_url=HERE, raise_server_exceptions=False) as client:
        yield client


def predict(client: TestClient, pixels: np.ndarray, stream: str = "default", **wishes: str) -> dict[str, Any]:
    """The answer for images (N, H, W, 3)."""
    files = [("image", (f"{number}.png", png(image))) for number, image in enumerate(pixels)]
    answer = client.post("/predict", files=files, data={"stream": stream, **wishes})
    assert answer.status_code == 200, answer.text
    return answer.json()


class Service:
    """`ncttt serve` in a process of its own, on a free port."""

    def __init__(self, folder: Path, *options: str, demo: bool = False):
        self.log = folder / "log.txt"
        command = [sys.executable, "-m", "ncttt", "serve", "--port", "0", "--threads", "1"]
        command += ["--demo"] if demo else ["--model", MODEL, "--state", str(folder / "states")]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [*command, *options],
                stderr=log,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
            )
        self.url = self._url()

    def _url(self) -> str:
        until = time.monotonic() + 120
        while time.monotonic() < until:
            found = re.search(r"http://\S+", self.log.read_text())
            if found:
                return found[0]
            assert self.process.poll() is None, self.log.read_text()
            time.sleep(0.02)
        raise AssertionError("the service did not start")

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and wait for the end."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(60)
