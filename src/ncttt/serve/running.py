"""Running a service until it is asked to stop: address, token, signals."""

from __future__ import annotations

import gc
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ncttt.base.errors import InputError
from ncttt.base.locks import alone_with
from ncttt.base.signals import Request, listening
from ncttt.serve.cluster.asked import counts, keep_to_this_machine
from ncttt.serve.process.launching import model_process
from ncttt.serve.settings import Settings

if TYPE_CHECKING:
    from uvicorn import Config

    from ncttt.serve.process.front import WorkerProcess


def run_service(
    settings: Settings,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    insecure: bool = False,
    engine: Literal["process", "ray"] = "process",
    replicas: int | str | None = None,
    address: str | None = None,
) -> None:
    """Serve until SIGTERM or Ctrl-C: then everything accepted is answered, and all states are saved.

    The engine `ray` keeps the address in this process and puts the model into `replicas` on a Ray cluster.
    The token is that of the environment variable NCTTT_TOKEN. An address that others can reach needs one, unless
    `insecure` says that something in front of the service asks for it.
    """
    try:
        import fastapi  # noqa: F401 - of the extra `serve`, as what follows
        import prometheus_client  # noqa: F401
        import python_multipart  # noqa: F401
        import uvicorn

        from ncttt.serve.access import TOKEN, is_loopback
        from ncttt.serve.connections import Bounded
    except ImportError as error:
        raise InputError(f"serving needs {error.name}: pip install 'ncttt[serve]'") from None
    token = os.environ.get(TOKEN) or None
    if token is None and not is_loopback(host) and not insecure:
        raise InputError(
            f"others can reach {host}: set a token in {TOKEN}, or say --insecure if something in front asks for one"
        )
    if not 0 <= port <= 65535:
        raise InputError(f"port must be a whole number from 0 to 65535; found {port}")
    replicated = _replicas(settings, engine, replicas, address)
    folder = Path(settings.state)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        lock = stack.enter_context(alone_with(folder))
        request = stack.enter_context(listening())
        bound = stack.enter_context(_bound(host, port))
        worker = stack.enter_context(replicated or _worker_process(settings, lock))
        from ncttt.serve.app import create_app

        app = create_app(settings, token=token, loopback=is_loopback(host), worker=worker)
        if request.signal is not None:
            request.obey()
        gc.collect()
        gc.freeze()  # what lives as long as the service: to look through it again stops all requests for 0.2 seconds
        config = uvicorn.Config(app, http=Bounded, log_level="warning", access_log=False)
        hint = " (open it in a browser)" if settings.playground else ""
        _serve(config, bound, f"serving {settings.model} on", hint, request)


@contextmanager
def _worker_process(settings: Settings, lock: int) -> Iterator[WorkerProcess]:
    """A worker in a process of its own, which loads the model while this one imports what it needs itself."""
    with model_process(settings, lock) as process:
        from ncttt.serve.app import say_on_stderr
        from ncttt.serve.process.front import WorkerProcess

        yield WorkerProcess(settings, process, say_on_stderr)


def _replicas(settings: Settings, engine: str, replicas: int | str | None, address: str | None) -> Any:
    """The replicas of a cluster, as a context, if they are asked for."""
    if engine == "process":
        given = {"--replicas": replicas, "--address": address}
        if any(value is not None for value in given.values()):
            name = next(name for name, value in given.items() if value is not None)
            raise InputError(f"{name} needs --engine ray; found --engine process")
        return None
    numbers = counts(1 if replicas is None else replicas)
    address = address or os.environ.get("RAY_ADDRESS")
    if address is None:
        keep_to_this_machine()
    try:
        from ncttt.serve.cluster.starting import replicas_of  # of the extra `ray`
    except ImportError as error:
        raise InputError(f"--engine ray needs {error.name}: pip install 'ncttt[ray]'") from None
    return replicas_of(settings, numbers, address)


def _bound(host: str, port: int) -> socket.socket:
    """A socket that listens; first of all, because a model takes seconds to load."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise InputError(f"cannot listen on {host}, port {port}: {error.strerror or error}") from None


def _serve(config: Config, address: socket.socket, told: str, hint: str, request: Request) -> None:
    from uvicorn import Server

    class Telling(Server):
        """Says where it listens, once it answers."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if request.signal is not None:  # it came before uvicorn listened to signals
                self.should_exit = True
                return
            host, port = address.getsockname()[:2]
            shown = f"[{host}]" if ":" in host else host
            print(f"ncttt: {told} http://{shown}:{port}{hint}", file=sys.stderr, flush=True)

    Telling(config).run(sockets=[address])
