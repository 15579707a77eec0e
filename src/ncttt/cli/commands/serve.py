"""`ncttt serve`: an adapting classifier as a service."""

from typing import Any, Literal

from ncttt.serve import run_service
from ncttt.serve.settings import Settings

EXAMPLE = "ncttt serve --model digits-small-ncttt --port 8000 --budget-ms 200"
GROUP = "train and adapt"


def serve(
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    insecure: bool = False,
    engine: Literal["process", "ray"] = "process",
    replicas: int | str | None = None,
    address: str | None = None,
    **settings: Any,
) -> None:
    """Serve a classifier over HTTP that adapts to each of its streams of images, until it is asked to stop.

    Args:
        host: Address to listen on; one that others can reach needs a token in the environment variable NCTTT_TOKEN.
        port: Port to listen on; 0 takes a free one.
        insecure: Listen on an address that others can reach without a token.
        engine: process serves in this process alone; ray puts the model into replicas on the machines of a Ray cluster,
            which share the folder of states.
        replicas: Number of replicas of --engine ray, such as 2, or a range such as 1-4 that follows the load; by
            default 1.
        address: Address of a Ray cluster, such as auto; by default that in RAY_ADDRESS, or else a local one that
            ends with the service.
    """
    of_engine = {"engine": engine, "replicas": replicas, "address": address}
    run_service(Settings(**settings), host=host, port=port, insecure=insecure, **of_engine)
