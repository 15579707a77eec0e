"""Takes the picture of the dashboard that the documentation shows, in the middle of a scenario.

python tests/browser/take_dashboard_screenshot.py docs/images/dashboard.png
"""

import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from browser_fixtures import CHROMIUM, FLAGS
from dashboard_fixtures import Service
from playwright.sync_api import sync_playwright

WINDOW = {"width": 1400, "height": 1260}


def take_dashboard_screenshot(picture: str) -> None:
    """Write a PNG of the demonstration while it shows the second shift of its scenario."""
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        service = Service(Path(folder), demo=True)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page(viewport=WINDOW, color_scheme="light", reduced_motion="reduce")
        page.goto(service.url)
        page.get_by_role("button", name=re.compile("Play clean")).click()
        page.locator("#playing", has_text=re.compile(r"Sending Motion blur, severity 5: 1,4\d0 of")).wait_for(
            timeout=300_000
        )
        page.screenshot(path=picture)
        browser.close()
        service.end()


if __name__ == "__main__":
    take_dashboard_screenshot(*sys.argv[1:])
