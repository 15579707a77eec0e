"""The fixtures of all tests in the browser, one Chromium for them."""

from browser_fixtures import address, chromium, opened

__all__ = ["address", "chromium", "opened"]
