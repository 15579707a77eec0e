"""Takes the picture of the report page that the documentation shows.

python tests/browser/take_screenshot.py results/cifar10c_severity5.sqlite docs/images/report.png
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from browser_fixtures import CHROMIUM, FLAGS
from playwright.sync_api import sync_playwright

from ncttt.report import write_report

WINDOW = {"width": 1120, "height": 1500}


def take_screenshot(rows: str, picture: str) -> None:
    """Write a PNG of the top of the page that these rows make."""
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        report = write_report([rows], folder)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page(viewport=WINDOW, color_scheme="light", reduced_motion="reduce")
        page.goto(Path(report.page).resolve().as_uri())
        page.screenshot(path=picture)
        browser.close()


if __name__ == "__main__":
    take_screenshot(*sys.argv[1:])
