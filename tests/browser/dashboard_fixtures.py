"""Services that run, and pages of them in Chromium that may reach nothing else."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).parents[1] / "serve"))  # the service that the other tests have

from service import Service, digits

__all__ = ["Service", "connected", "digits"]


@contextmanager
def connected(chromium, url: str, *, complaints: bool = False, **asked) -> Iterator:
    """The dashboard of a service; other hosts are errors, and unless `complaints` are expected, so is the console."""
    options = {"viewport": {"width": 1400, "height": 900}, "color_scheme": "light"} | asked
    context = chromium.new_context(**options)
    page = context.new_page()
    told: list[str] = []
    host = urlsplit(url).netloc
    page.on("console", lambda message: None if complaints else told.append(message.text))
    page.on("pageerror", lambda error: told.append(str(error)))
    page.on("request", lambda asked: told.append(asked.url) if urlsplit(asked.url).netloc not in (host, "") else None)
    page.goto(url)
    yield page
    context.close()
    assert told == []
