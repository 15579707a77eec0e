"""Fetch one file over HTTPS: checked by its hash, resumed after a break, and in place only when it is complete.

Plain HTTP, which anybody on the way can change, is refused, also where a server redirects to it. The one exception is
an address of this machine, such as http://127.0.0.1:8000/set.tar.
"""

import ipaddress
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pooch
import requests
import urllib3
from requests.adapters import HTTPAdapter

from ncttt.base.errors import InputError, Unreachable
from ncttt.base.files import name_the_file

Progress = Callable[[int, int], None]
CONNECT_SECONDS = 5
SILENCE_SECONDS = 30
ATTEMPTS = 4
CHUNK = 1 << 15  # what a break loses at most


class WrongChecksum(InputError):
    """What arrived is not the file that was asked for."""


def download(
    url: str, target: Path, known_hash: str | None, *, progress: Progress | None = None, wait: float = 1.0
) -> Path:
    """Fetch `url` to `target` and return it; `progress` is called with (bytes so far, bytes in all or 0).

    What has arrived stays in `<target>.part`, and a later call goes on from there if the server allows it.
    """
    pooch.get_logger().setLevel("WARNING")  # progress is ours to tell
    registry = pooch.create(
        path=target.parent, base_url="", registry={target.name: known_hash}, urls={target.name: url}
    )
    fetcher = _Resuming(target.with_name(target.name + ".part"), progress, wait)
    try:
        return Path(registry.fetch(target.name, downloader=fetcher))
    except InputError:
        raise
    except ValueError as error:
        # pooch has thrown the file away: keeping wrong bytes would only make the next attempt fail as well.
        raise WrongChecksum(f"{url}: wrong checksum, the file was discarded; {_one_line(error)}") from error


class _Resuming:
    """A downloader for pooch that collects into a `.part` file and asks only for the bytes still missing."""

    def __init__(self, part: Path, progress: Progress | None, wait: float) -> None:
        self.part, self.progress, self.wait = part, progress, wait

    def __call__(self, fname: str, action: Any, pooch: Any, *, check_only: bool | None = None) -> None:
        # pooch's protocol names them so: the address, the file to write, itself.
        most = self._have()
        failures = 0
        while True:
            try:
                self._receive(fname)
                break
            except requests.RequestException as error:
                # A transfer that gets on may break as often as it likes.
                got_on = self._have() > most
                most, failures = max(most, self._have()), 1 if got_on else failures + 1
                # A home that cannot be reached at all fails at once; a broken transfer is worth another go.
                if failures == ATTEMPTS or not (got_on or _transient(error)):
                    raise Unreachable(f"{fname}: {_reason(error)}") from error
                time.sleep(self.wait * failures)
        self.part.replace(action)

    def _have(self) -> int:
        return self.part.stat().st_size if self.part.exists() else 0

    def _receive(self, url: str) -> None:
        have = self._have()
        # Without "identity" a server may compress on the fly, and byte positions would mean nothing.
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
        timeout = (CONNECT_SECONDS, SILENCE_SECONDS)
        with _session(url) as session, session.get(url, headers=headers, timeout=timeout, stream=True) as response:
            if response.status_code == requests.codes.requested_range_not_satisfiable:
                if response.headers.get("Content-Range") == f"bytes */{have}":
                    return  # the last run ended between the last byte and the rename
                self._start_again()
            response.raise_for_status()
            if response.status_code != requests.codes.partial_content:
                have = 0
            elif not response.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
                self._start_again()  # some other piece of the file
            self._append(response, have)

    def _start_again(self) -> None:
        self.part.unlink(missing_ok=True)
        raise requests.exceptions.ChunkedEncodingError("the partial file did not fit; starting again")

    def _append(self, response: Any, start: int) -> None:
        total, have = _total(response.headers, start), start
        with name_the_file(self.part), self.part.open("ab" if start else "wb") as file:
            for chunk in response.iter_content(CHUNK):
                file.write(chunk)
                have += len(chunk)
                if self.progress:
                    self.progress(have, total)
        if have < total:
            raise requests.exceptions.ChunkedEncodingError(f"ended after {have} of {total} bytes")


def _session(url: str) -> requests.Session:
    session = requests.Session()
    session.mount("http://", _PlainHTTP(allowed=urlsplit(url).scheme == "http" and _is_here(url)))
    return session


class _PlainHTTP(HTTPAdapter):
    """What answers to http:// addresses, the first one and those of redirects."""

    def __init__(self, allowed: bool) -> None:
        super().__init__()
        self.allowed = allowed

    def send(self, request: requests.PreparedRequest, *args: Any, **settings: Any) -> requests.Response:
        if not self.allowed or not _is_here(str(request.url)):
            raise Unreachable(f"{request.url}: plain http can be changed on its way, so only https is fetched")
        return super().send(request, *args, **settings)


def _is_here(url: str) -> bool:
    """Whether an address is one of this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _total(headers: Mapping[str, str], start: int) -> int:
    """The size of the whole file, of which this answer begins at `start`; 0 if the server does not tell."""
    whole = headers.get("Content-Range", "").rpartition("/")[2]
    length = headers.get("Content-Length", "")
    return int(whole) if whole.isdecimal() else start + int(length) if length.isdecimal() else 0


def _transient(error: Exception) -> bool:
    if isinstance(error, requests.HTTPError):
        return error.response is not None and (error.response.status_code >= 500 or error.response.status_code == 429)
    if isinstance(error, requests.exceptions.ChunkedEncodingError | requests.exceptions.ReadTimeout):
        return True
    # A connection that was made and then lost, unlike one that was refused.
    cause = error.args[0] if error.args else None
    return isinstance(cause, urllib3.exceptions.ProtocolError | urllib3.exceptions.ReadTimeoutError)


def _reason(error: Exception) -> str:
    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"the server answers {error.response.status_code} {error.response.reason}"
    if isinstance(error, requests.exceptions.ConnectTimeout):
        return f"no connection within {CONNECT_SECONDS} s"
    if "resolve" in str(error):
        return "its name cannot be resolved (offline?)"
    return _one_line(error)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
