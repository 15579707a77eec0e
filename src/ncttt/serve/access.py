"""Who may ask: a bearer token, and no page of another site in the browser of somebody who may."""

from __future__ import annotations

import hmac
import ipaddress
import json
from functools import lru_cache
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

TOKEN = "NCTTT_TOKEN"  # nosec B105 # the name of the environment variable
OPEN = ("/healthz", "/readyz")  # for those who start and stop services
PAGE = "/dashboard/"  # the files of the page, which hold no data; the page itself asks for the token


class Access:
    """Answers 401 without the token, if there is one, and 403 to pages of other sites."""

    def __init__(self, app: ASGIApp, token: str | None, loopback: bool):
        self._app, self._token, self._loopback = app, token, loopback

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refusal(scope) if scope["type"] == "http" and scope["path"] not in OPEN else None
        if refusal is None:
            await self._app(scope, receive, send)
        else:
            await _refuse(send, *refusal)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        host, origin = headers.get(b"host", ""), headers.get(b"origin")
        if origin is not None and _part(origin, "netloc") != host:
            return 403, f"pages of {origin:.80} may not use this service"
        # Without a token, a name that leads here must be this machine's own: else any page could rebind its own name.
        if self._token is None and self._loopback and not is_loopback(_part(f"//{host}", "hostname")):
            return 403, f"this service answers to localhost alone; found the host {host:.80}"
        given = headers.get(b"authorization", "")
        if scope["path"] == "/" or scope["path"].startswith(PAGE):
            return None
        if self._token is not None and not hmac.compare_digest(given.encode(), f"Bearer {self._token}".encode()):
            return 401, "this service needs the header 'Authorization: Bearer TOKEN'"
        return None


def _part(address: str, name: str) -> str:
    """A part of an address; of one that is malformed, nothing."""
    try:
        return getattr(urlsplit(address), name) or ""
    except ValueError:
        return ""


@lru_cache(maxsize=64)  # asked for each request
def is_loopback(host: str) -> bool:
    """Whether a host is this machine alone.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


async def _refuse(send: Send, status: int, detail: str) -> None:
    body = json.dumps({"detail": detail}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers += [(b"www-authenticate", b"Bearer")] if status == 401 else []
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
