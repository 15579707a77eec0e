"""A direct route for the requests that carry the load, past the routing and the checks that they do not need.

FastAPI spends more time on a request than it takes to read a small image. The route is still one of the application's,
so that it is described.
"""

from __future__ import annotations

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send


class DirectRoute:
    """Sends POST requests for a route to its function; errors of these kinds become what `refused` makes of them."""

    def __init__(
        self,
        app: ASGIApp,
        route: Route,
        refused: Callable[[Request, Exception], Response],
        kinds: tuple[type[Exception], ...],
    ):
        self._app, self._route, self._refused, self._kinds = app, route, refused, kinds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != self._route.path or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        scope["route"] = self._route
        request = Request(scope, receive)
        try:
            response = await self._route.endpoint(request)
        except self._kinds as error:
            response = self._refused(request, error)
        await response(scope, receive, send)
