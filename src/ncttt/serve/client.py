"""Client: sends images to a service and gives its answers; needs none of what serving needs."""

from __future__ import annotations

import io
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import requests

from ncttt.base.errors import InputError
from ncttt.serve.settings import STREAM, checked_name

SECONDS = 60.0  # without an answer
BUSY = 429


class ServiceError(InputError):
    """The service did not do what it was asked; the message is its own sentence."""

    def __init__(self, message: str, status: int | None = None):
        super().__init__(message)
        self.status = status


class Client:
    """Asks a service of `ncttt serve` for predictions; it keeps one connection open until `close`.

    A service with a token needs the same one. While its queue is full, a request is sent again for up to `patience`
    seconds. A request that got no answer is not repeated, because the stream may have learned from it.

    >>> Client("http://127.0.0.1:8000")
    Client('http://127.0.0.1:8000')
    """

    def __init__(self, url: str, token: str | None = None, *, seconds: float = SECONDS, patience: float = 10.0):
        if not isinstance(url, str) or not url.startswith(("http://", "https://")):
            raise InputError(f"a service has an address such as http://127.0.0.1:8000; found {url!r}")
        self.url, self._seconds, self._patience = url.rstrip("/"), seconds, patience
        self._session = requests.Session()
        if token is not None:
            self._session.headers["Authorization"] = f"Bearer {token}"

    def predict(
        self, images: Any, stream: str = STREAM, *, probabilities: bool = False, shift: bool = False
    ) -> dict[str, Any]:
        """The answer for images of a stream, as JSON values: `predictions`, `outcome`, `drift`, `version` and so on.

        Images are files by path, bytes of files, PIL images, arrays uint8 (H, W, 3), or a tensor or array of several:
        floats (B, 3, H, W) in [0, 1], or uint8 (B, H, W, 3). They travel as PNG, 8 bits a channel.
        """
        files = [("image", (name, content)) for name, content in encoded(images)]
        fields = {"stream": checked_name(stream), "probabilities": str(probabilities), "shift": str(shift)}
        return self._ask("POST", "/predict", files=files, data=fields)

    def feedback(self, labels: Mapping[str, str]) -> dict[str, Any]:
        """Send labels by the ids that predictions had; the answer scores both models."""
        given = [{"id": id_, "label": label} for id_, label in labels.items()]
        return self._ask("POST", "/feedback", json={"labels": given})

    def about(self) -> dict[str, Any]:
        """What is served."""
        return self._ask("GET", "/about")

    def stream(self, name: str = STREAM) -> dict[str, Any]:
        """What is known of a stream."""
        return self._ask("GET", f"/streams/{checked_name(name)}")

    def freeze(self, name: str = STREAM) -> dict[str, Any]:
        """Let a stream learn nothing from now on."""
        return self._ask("POST", f"/streams/{checked_name(name)}/freeze")

    def thaw(self, name: str = STREAM) -> dict[str, Any]:
        """Let a frozen stream learn again."""
        return self._ask("POST", f"/streams/{checked_name(name)}/thaw")

    def reset(self, name: str = STREAM) -> dict[str, Any]:
        """Send a stream back to the model as it was trained."""
        return self._ask("POST", f"/streams/{checked_name(name)}/reset")

    def roll_back(self, version: int, name: str = STREAM) -> dict[str, Any]:
        """Give a stream the content of an earlier version."""
        return self._ask("POST", f"/streams/{checked_name(name)}/roll-back", json={"version": version})

    def close(self) -> None:
        """Close the connection."""
        self._session.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({self.url!r})"

    def _ask(self, verb: str, path: str, **body: Any) -> Any:
        until = time.monotonic() + self._patience
        while True:
            try:
                answer = self._session.request(verb, self.url + path, timeout=self._seconds, **body)
            except requests.RequestException as error:
                raise ServiceError(f"no answer from {self.url}: {error}") from None
            if answer.status_code != BUSY or time.monotonic() >= until:
                return self._checked(answer, path)
            time.sleep(0.1)

    def _checked(self, answer: requests.Response, path: str) -> Any:
        try:
            value = answer.json()
        except ValueError:
            raise ServiceError(f"{self.url}{path} is no service of ncttt: its answer is no JSON") from None
        if answer.ok:
            return value
        detail = value.get("detail") if isinstance(value, dict) else None
        raise ServiceError(f"{self.url}{path} answered {answer.status_code}: {detail}", answer.status_code)


def encoded(images: Any) -> list[tuple[str, bytes]]:
    """Images of any kind that `Client.predict` takes, as files with names."""
    if isinstance(images, str | Path | bytes) or not isinstance(images, Sequence):
        images = [images] if isinstance(images, str | Path | bytes) or _is_one(images) else list(images)
    if not images:
        raise InputError("there must be at least one image; found none")
    return [_file(image, number) for number, image in enumerate(images, 1)]


def _is_one(images: Any) -> bool:
    shape = getattr(images, "shape", None)
    if shape is None and not hasattr(images, "save"):
        raise InputError(f"images must be paths, bytes, PIL images, arrays or tensors; found {type(images).__name__}")
    return shape is None or len(shape) == 3


def _file(image: Any, number: int) -> tuple[str, bytes]:
    if isinstance(image, bytes):
        return f"{number}", image
    if isinstance(image, str | Path):
        try:
            return Path(image).name, Path(image).read_bytes()
        except OSError as error:
            raise InputError(f"{image} cannot be read: {error.strerror}") from None
    # Pillow and NumPy are needed for pixels alone, not for files.
    from PIL import Image

    buffer = io.BytesIO()
    (image if hasattr(image, "save") else Image.fromarray(_pixels(image))).save(buffer, "PNG")
    return f"{number}.png", buffer.getvalue()


def _pixels(image: Any) -> Any:
    import numpy as np

    array = image.detach().cpu().numpy() if hasattr(image, "detach") else np.asarray(image)
    if np.issubdtype(array.dtype, np.floating) and array.ndim == 3 and array.shape[0] == 3:
        if array.min() < 0 or array.max() > 1:
            raise InputError(f"floats must be in [0, 1]; found {array.min():.3g} to {array.max():.3g}")
        return np.round(array.transpose(1, 2, 0) * 255).astype(np.uint8)
    if array.dtype == np.uint8 and array.ndim == 3 and array.shape[2] == 3:
        return array
    raise InputError(f"an image is float (3, H, W) or uint8 (H, W, 3); found {array.dtype} {array.shape}")
