"""`ncttt serve`: an adapting classifier as a service."""

from typing import Any

from ncttt.serve import run_service
from ncttt.serve.settings import Settings

EXAMPLE = "ncttt serve --model digits-small-ncttt --port 8000 --budget-ms 200"
GROUP = "train and adapt"


def serve(*, host: str = "127.0.0.1", port: int = 8000, insecure: bool = False, **settings: Any) -> None:
    """Serve a classifier over HTTP that adapts to each of its streams of images, until it is asked to stop.

    Args:
        host: Address to listen on; one that others can reach needs a token in the environment variable NCTTT_TOKEN.
        port: Port to listen on; 0 takes a free one.
        insecure: Listen on an address that others can reach without a token.
    """
    run_service(Settings(**settings), host=host, port=port, insecure=insecure)
