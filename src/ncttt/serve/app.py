"""The application: routes of a service, and what they answer when something is wrong."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from operator import methodcaller
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.routing import Route

from ncttt import __version__
from ncttt.base.errors import InputError
from ncttt.serve import answers, bodies
from ncttt.serve.access import Access
from ncttt.serve.backend import Backend
from ncttt.serve.batching import QueueClosed, QueueFull, Room
from ncttt.serve.bodies import SMALL_BODY, Name
from ncttt.serve.dashboard.routes import add_dashboard
from ncttt.serve.delivery import Delivery
from ncttt.serve.direct_route import DirectRoute
from ncttt.serve.feedback import Feedback
from ncttt.serve.health import Counted, add_health
from ncttt.serve.images import decoded, decoded_at_once
from ncttt.serve.journal import Journal
from ncttt.serve.operations import page
from ncttt.serve.replies import answered, of_score, of_stream, reply
from ncttt.serve.served import Served
from ncttt.serve.settings import Settings
from ncttt.serve.streams import StreamFacts, Streams, UnknownStream
from ncttt.serve.uploads import Refused, asked_for, read_upload, sentence
from ncttt.serve.worker import Answer, Worker

STATUS = {UnknownStream: 404, QueueFull: 429, QueueClosed: 503, OSError: 503}
KINDS = (InputError, Refused, QueueFull, QueueClosed, OSError)  # errors that are answers
REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": answers.Refusal} for status in (400, 401, 403, 404, 413, 415, 422, 429, 503)
}


def create_app(
    settings: Settings,
    *,
    token: str | None = None,
    loopback: bool = True,
    say: Callable[[str], None] | None = None,
    worker: Backend | None = None,
) -> FastAPI:
    """A service as an ASGI application; its model is loaded when this returns.

    With a `token` every request but those for health must bear it. Without one, and on a `loopback` address, only
    requests to localhost are answered. `app.state.worker` is the worker, for who adds routes: that of this process,
    unless another one is given.
    """
    if worker is None:
        served = Served(settings)
        worker = Worker(settings, served, Journal(settings, served.classes), say or say_on_stderr)
    metrics = worker.journal.metrics
    feedback = Feedback(worker.served.classes, settings.most_predictions)
    decoders = ThreadPoolExecutor(2, thread_name_prefix="decoder")

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        worker.start()
        try:
            yield
        finally:
            if playground is not None:
                await playground.pause()
            await asyncio.to_thread(worker.close)
            decoders.shutdown()

    app = FastAPI(title="ncttt", version=__version__, summary=__doc__, lifespan=lifespan, responses=REFUSALS)
    app.state.worker, app.state.metrics = worker, metrics
    _add_refusals(app)
    _add_predictions(app, worker, feedback, decoders)
    app.add_middleware(Access, token=token, loopback=loopback)
    app.add_middleware(Counted, metrics=metrics)  # the last that is added is the first that is asked
    _add_streams(app, worker)
    add_health(app, worker)
    playground = add_dashboard(app, worker)
    return app


def _add_predictions(app: FastAPI, worker: Backend, feedback: Feedback, decoders: ThreadPoolExecutor) -> None:
    settings, served, journal, delivery = worker.settings, worker.served, worker.journal, Delivery()
    reading, decoding = Room(settings.most_reading, "bytes"), Room(settings.most_waiting, "images")

    @app.post(
        "/predict",
        response_model=answers.PredictAnswer,
        openapi_extra=bodies.of_images(),
    )
    async def predict(request: Request) -> Response:
        """Predict one or many images of a stream, with adaptation and without."""
        began = time.perf_counter()
        with reading.share() as take_bytes, decoding.share() as take_images:
            upload = await read_upload(request, settings, take_bytes)
            images = decoded_at_once(upload.contents, served.size, served.resize)
            if images is None:
                files = (upload.contents, upload.names, served.size, served.resize)
                take_images(len(upload.contents))
                decode = partial(decoded, *files, most_pixels=settings.most_pixels)
                images = await asyncio.get_running_loop().run_in_executor(decoders, decode)
            upload.contents.clear()  # else they would wait for the batch, too
        answer: Answer = await delivery.result(worker.submit(upload.stream, images, upload.shift))
        chosen = answer.probabilities.argmax(1).tolist(), answer.source_probabilities.argmax(1).tolist()
        ids = feedback.remember(upload.stream, *chosen)
        journal.history.show(upload.stream, images, answer)
        total = time.perf_counter() - began
        return reply(answered(answer, upload.stream, ids, served.classes, upload.probabilities, total))

    app.add_middleware(DirectRoute, route=Route("/predict", predict), refused=_refused, kinds=KINDS)

    @app.post(
        "/feedback",
        response_model=answers.FeedbackAnswer,
        openapi_extra=bodies.of_json(answers.FeedbackRequest),
    )
    async def give_feedback(request: Request) -> Response:
        """Take labels that came later, and score both models by them."""
        asked = await asked_for(request, answers.FeedbackRequest, settings.most_bytes)
        assert isinstance(asked, answers.FeedbackRequest)
        labels = [(label.id, feedback.index(label.label)) for label in asked.labels]
        scored = [(id_, feedback.score(id_, label)) for id_, label in labels]
        for found in (found for _, found in scored if found is not None):
            if journal.history.scored(*found):  # else it would bring back the series of a stream that is gone
                journal.metrics.scored(*found)
        streams = sorted({found[0] for _, found in scored if found is not None})
        unknown = [id_ for id_, found in scored if found is None]
        return reply({"scores": [of_score(feedback, stream) for stream in streams], "unknown": unknown})


def _add_streams(app: FastAPI, worker: Backend) -> None:
    async def told(function: Callable[[Streams], Any]) -> Any:
        return await asyncio.wrap_future(worker.call(function))

    async def operated(function: Callable[[Streams], StreamFacts]) -> Response:
        return reply(of_stream(await told(function)))

    @app.get("/streams", response_model=answers.StreamList)
    async def list_streams(
        first: Annotated[int, Query(ge=0, le=2**53)] = 0,
        most: Annotated[int, Query(ge=1, le=1000)] = 100,
        part: Annotated[str, Query(max_length=64)] = "",
    ) -> Response:
        """List streams by name, from the first of a number on; with a part, those that have it in their name."""

        total, found = await told(partial(page, first=first, most=most, part=part))
        return reply({"streams": [of_stream(facts) for facts in found], "total": total})

    @app.get("/streams/{name}", response_model=answers.StreamAnswer)
    async def show_stream(name: Name) -> Response:
        """Tell of a stream."""
        return await operated(methodcaller("facts", name))

    @app.delete("/streams/{name}", status_code=204)
    async def delete_stream(name: Name) -> Response:
        """Forget a stream, in memory and on disk."""
        await told(methodcaller("delete", name))
        return Response(status_code=204)

    @app.post("/streams/{name}/freeze", response_model=answers.StreamAnswer)
    async def freeze_stream(name: Name) -> Response:
        """Let a stream learn nothing from now on."""
        return await operated(methodcaller("freeze", name, True))

    @app.post("/streams/{name}/thaw", response_model=answers.StreamAnswer)
    async def thaw_stream(name: Name) -> Response:
        """Let a frozen stream learn again."""
        return await operated(methodcaller("freeze", name, False))

    @app.post("/streams/{name}/reset", response_model=answers.StreamAnswer)
    async def reset_stream(name: Name) -> Response:
        """Send a stream back to the model as it was trained."""
        done = await operated(methodcaller("reset", name))
        worker.journal.metrics.reset(name, "operator")
        return done

    @app.post(
        "/streams/{name}/roll-back",
        response_model=answers.StreamAnswer,
        openapi_extra=bodies.of_json(answers.RollBackRequest),
    )
    async def roll_back_stream(name: Name, request: Request) -> Response:
        """Give a stream the content of an earlier version."""
        asked = await asked_for(request, answers.RollBackRequest, SMALL_BODY)
        assert isinstance(asked, answers.RollBackRequest)
        return await operated(methodcaller("roll_back", name, asked.version))


def say_on_stderr(line: str) -> None:
    """Tell whoever runs the service."""
    print(f"ncttt: {line}", file=sys.stderr, flush=True)


def _add_refusals(app: FastAPI) -> None:
    async def refused(request: Request, error: Exception) -> Response:
        return _refused(request, error)

    async def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return JSONResponse({"detail": sentence(list(error.errors()))}, 422)

    for kind in KINDS:
        app.add_exception_handler(kind, refused)
    app.add_exception_handler(RequestValidationError, invalid)


def _refused(request: Request, error: Exception) -> Response:
    kinds = (STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)
    status = error.status if isinstance(error, Refused) else next(kinds, 422)
    headers = {"retry-after": "1"} if status in (429, 503) else None
    return JSONResponse({"detail": str(error)[:1000]}, status, headers)
