"""`ncttt serve`: an adapting classifier as a service."""

import os
from typing import Any, Literal

from ncttt.serve import run_service
from ncttt.serve.demo import chosen_settings

EXAMPLE = ("ncttt serve --demo", "ncttt serve --model digits-small-ncttt --port 8000 --budget-ms 200")
GROUP = "train and adapt"


def serve(
    *,
    model: str | None = None,
    demo: bool = False,
    host: str = "127.0.0.1",
    port: int = 8000,
    insecure: bool = False,
    engine: Literal["process", "ray"] = "process",
    replicas: int | str | None = None,
    address: str | None = None,
    state: str | None = None,
    **settings: Any,
) -> None:
    """Serve a classifier over HTTP that adapts to each of its streams of images, until it is asked to stop.

    Args:
        model: Zoo name or folder of the model; with --demo digits-small-ncttt by default.
        demo: Show what it does: a shipped model and a playground in the browser, with a state that is not kept.
        host: Address to listen on; one that others can reach needs a token in the environment variable NCTTT_TOKEN.
        port: Port to listen on; 0 takes a free one.
        insecure: Listen on an address that others can reach without a token.
        engine: process puts the model into a process of its own; ray into replicas on the machines of a Ray cluster,
            which share the folder of states.
        replicas: Number of replicas of --engine ray, such as 2, or a range such as 1-4 that follows the load; by
            default 1.
        address: Address of a Ray cluster, such as auto; by default that in RAY_ADDRESS, or else a local one that
            ends with the service.
        state: Folder of the states of streams, which a later start goes on from; by default runs/serve.
    """
    of_engine = {"engine": engine, "replicas": replicas, "address": address}
    cluster = (address or os.environ.get("RAY_ADDRESS")) if engine == "ray" else None
    with chosen_settings(demo=demo, model=model, state=state, cluster=cluster, **settings) as chosen:
        run_service(chosen, host=host, port=port, insecure=insecure, **of_engine)
