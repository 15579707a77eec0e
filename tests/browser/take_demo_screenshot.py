"""Takes the picture of the demonstration's live view that the tutorial shows, before its last domain.

python tests/browser/take_demo_screenshot.py docs/images/demo.png
"""

import io
import sys
from itertools import takewhile

from browser_fixtures import CHROMIUM, FLAGS
from playwright.sync_api import sync_playwright
from rich.console import Console

from ncttt.demo.live import view_of
from ncttt.demo.stream import demo_stream


def take_demo_screenshot(picture: str) -> None:
    """Write a PNG of the view as a terminal of 100 characters shows it."""
    console = Console(record=True, width=100, force_terminal=True, file=io.StringIO())
    shown = demo_stream("digits", images=500)
    view = view_of(shown)
    view.records += takewhile(lambda record: record.domain < len(view.domains) - 1, shown)
    console.print(view)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page()
        page.set_content(console.export_svg(title="ncttt demo"))
        page.locator("svg").screenshot(path=picture)
        browser.close()


if __name__ == "__main__":
    take_demo_screenshot(*sys.argv[1:])
