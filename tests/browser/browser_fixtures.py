"""A Chromium without a network, and a page to open in it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "report"))  # the rows that the other tests of pages have

CHROMIUM = "/usr/bin/chromium"
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]  # fmt: skip


PHONE, DESK = ({"viewport": {"width": width, "height": 844}} for width in (390, 1400))
WIDER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
# Texts that lie beyond the window, or are cut by their own box, unless a box around them scrolls.
CUT = """() => [...document.querySelectorAll(
    'h1, h2, h3, h4, p, li, dt, dd, figcaption, summary, label, button, .chart svg')]
  .filter((part) => part.getClientRects().length && !part.closest('.scroll, pre, .skip, .unseen'))
  .filter((part) => {
    const box = part.getBoundingClientRect();
    const cut = part.scrollWidth > part.clientWidth + 1 && getComputedStyle(part).display !== 'inline';
    return cut || box.right > innerWidth + 1 || box.left < -1;
  })
  .map((part) => part.textContent.trim().slice(0, 60))"""


def unfold(page) -> None:
    """Open all that is folded."""
    page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")


@pytest.fixture(scope="session")
def chromium() -> Iterator:
    """One browser for all tests; each gets a context of its own."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def address(tmp_path_factory) -> str:
    """The page of a study, on disk."""
    from page_rows import many_rows

    from ncttt.report.page import write_page

    return write_page(many_rows(), tmp_path_factory.mktemp("report")).as_uri()


@pytest.fixture
def opened(chromium, address, request) -> Iterator:
    """The page in a window as wide as the test asks."""
    with visited(chromium, address, **getattr(request, "param", {})) as page:
        yield page


@contextmanager
def visited(chromium, address: str, **asked) -> Iterator:
    """A page, offline; messages of the console and requests are errors."""
    options = {"viewport": {"width": 1400, "height": 900}, "color_scheme": "light"} | asked
    context = chromium.new_context(**options)
    context.set_offline(True)
    page = context.new_page()
    told: list[str] = []
    page.on("console", lambda message: told.append(message.text))
    page.on("pageerror", lambda error: told.append(str(error)))
    page.on("request", lambda asked: told.append(asked.url) if not asked.url.startswith(("file:", "data:")) else None)
    page.goto(address)
    yield page
    context.close()
    assert told == []
