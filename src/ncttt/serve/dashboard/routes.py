"""The routes of the dashboard: its page and files, histories of streams, and the playground."""

from __future__ import annotations

import asyncio
from functools import partial
from importlib.resources import files
from typing import Annotated

from fastapi import FastAPI, Query, Request
from fastapi.responses import Response

from ncttt.report.palette import style_sheet
from ncttt.serve import bodies
from ncttt.serve.access import PAGE
from ncttt.serve.backend import Backend
from ncttt.serve.bodies import SMALL_BODY, Name
from ncttt.serve.dashboard import answers
from ncttt.serve.dashboard.playground import Playground
from ncttt.serve.operations import facts_if_there
from ncttt.serve.replies import of_stream, reply
from ncttt.serve.uploads import asked_for

OWN, SHARED = "ncttt.serve.dashboard", "ncttt.report.page"
FILES = {
    "style.css": SHARED,
    "theme.js": SHARED,
    "dashboard.css": OWN,
    "service.js": OWN,
    "plots.js": OWN,
    "streams.js": OWN,
    "charts.js": OWN,
    "beside.js": OWN,
    "watch.js": OWN,
    "playground.js": OWN,
    "dashboard.js": OWN,
}
KINDS = {"html": "text/html", "css": "text/css", "js": "text/javascript"}
HEADERS = {
    "content-security-policy": "default-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; object-src 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}


def add_dashboard(app: FastAPI, worker: Backend) -> Playground | None:
    """Add the page, the histories that it shows, and the playground if there is to be one, which is returned."""
    _add_page(app)
    _add_history(app, worker)
    if not worker.settings.playground:
        return None
    playground = Playground(worker)
    _add_playground(app, playground)
    return playground


def _add_page(app: FastAPI) -> None:
    texts = {name: files(package).joinpath(name).read_text("utf-8") for name, package in FILES.items()}
    texts |= {"palette.css": style_sheet(), "": files(OWN).joinpath("page.html").read_text("utf-8")}

    @app.get("/", include_in_schema=False)
    @app.get(PAGE + "{name}", include_in_schema=False)
    async def page(name: str = "") -> Response:
        if name not in texts:
            return reply({"detail": f"the dashboard has no file {name!r:.80}"}, 404)
        return Response(texts[name], media_type=KINDS[name.partition(".")[2] or "html"], headers=HEADERS)


def _add_history(app: FastAPI, worker: Backend) -> None:
    @app.get("/streams/{name}/history", response_model=answers.HistoryAnswer)
    async def show_history(
        name: Name,
        since: Annotated[int, Query(ge=0, le=2**53)] = 0,
    ) -> Response:
        """Tell of a stream and its last batches, from a number on; nothing of one that is not there, or not yet."""
        told = await asyncio.to_thread(worker.journal.history.told, name, since, worker.served.classes)
        facts = None
        if worker.served.protocol.remembers:
            facts = await asyncio.wrap_future(worker.call(partial(facts_if_there, name=name)))
        return reply(told | {"facts": facts and of_stream(facts)})


def _add_playground(app: FastAPI, playground: Playground) -> None:
    @app.get("/playground", response_model=answers.PlaygroundAnswer)
    async def show_playground() -> Response:
        """Tell what the playground can show, and what it is showing."""
        return reply(playground.told())

    @app.post(
        "/playground/play",
        response_model=answers.PlaygroundAnswer,
        openapi_extra=bodies.of_json(answers.PlayRequest),
    )
    async def play(request: Request) -> Response:
        """Play images of a set, or a scenario of several corruptions."""
        asked = await asked_for(request, answers.PlayRequest, SMALL_BODY)
        assert isinstance(asked, answers.PlayRequest)
        await playground.play(asked)
        return reply(playground.told())

    @app.post("/playground/pause", response_model=answers.PlaygroundAnswer)
    async def pause() -> Response:
        """Stop playing; the stream stays as it is."""
        await playground.pause()
        return reply(playground.told())
