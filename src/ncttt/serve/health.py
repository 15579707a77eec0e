"""Health: what orchestrators and Prometheus ask for, and the count of requests."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import FastAPI
from fastapi.responses import Response
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.types import ASGIApp, Receive, Scope, Send

from ncttt import __version__
from ncttt.methods.registry import name_of
from ncttt.serve import answers
from ncttt.serve.backend import Backend
from ncttt.serve.metrics import Metrics
from ncttt.serve.replies import reply


def add_health(app: FastAPI, worker: Backend) -> None:
    """Add the routes that tell what is served and how it is."""
    served = worker.served

    @app.get("/about", response_model=answers.About)
    async def about() -> Response:
        """Tell what is served."""
        facts = {"ncttt": __version__, "model": worker.settings.model, "method": name_of(type(served.method))}
        steps = worker.settings.steps
        facts |= {"protocol": served.protocol.name, "stop": served.stop}
        facts |= {"steps": served.method.steps if steps is None else steps, "size": served.size}
        shown = {"playground": bool(worker.settings.playground), "most_shown": worker.settings.most_shown}
        return reply(facts | shown | {"classes": list(served.classes)})

    @app.get("/healthz", response_model=dict[str, str])
    async def healthz() -> Response:
        """Tell whether the service works; else it must be started again."""
        return reply({"status": "ok"}) if worker.alive else reply({"detail": "the worker has ended"}, 503)

    @app.get("/readyz", response_model=dict[str, str])
    async def readyz() -> Response:
        """Tell whether requests are taken now."""
        if worker.ready:
            return reply({"status": "ready"})
        return reply({"detail": "not ready: ending, or the queue is full"}, 503)

    @app.get("/metrics", response_class=Response)
    async def metrics() -> Response:
        """Give the metrics in the format of Prometheus."""
        return Response(await asyncio.to_thread(worker.text), media_type=CONTENT_TYPE_LATEST)


class Counted:
    """Counts requests by route and status."""

    def __init__(self, app: ASGIApp, metrics: Metrics):
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status = 500

        async def noting(message: Any) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self._app(scope, receive, noting)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            self._metrics.requests.labels(route, str(status)).inc()
