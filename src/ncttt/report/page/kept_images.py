"""Images that a benchmark kept next to its store: read if they are there, never made anew."""

from __future__ import annotations

from io import BytesIO

import numpy as np
from PIL import Image

from ncttt.benchmark.draws import ImageDraw
from ncttt.benchmark.driver import cache_beside
from ncttt.benchmark.scenarios import Scenario
from ncttt.benchmark.store import Store
from ncttt.report.accuracy import Row

LARGEST = 96  # pixels of a side that is embedded


def kept_images(store: Store, row: Row) -> tuple[np.ndarray, np.ndarray] | None:
    """Images and labels of a row."""
    return _read(store, _scenario(row))


def kept_originals(store: Store, row: Row) -> np.ndarray | None:
    """The same images without their corruption."""
    found = _read(store, _scenario(row).clean)
    return None if found is None else found[0]


def png(pixels: np.ndarray) -> bytes:
    """One image as a PNG that is small enough for a page."""
    image = Image.fromarray(pixels)
    image.thumbnail((LARGEST, LARGEST))
    with BytesIO() as file:
        image.save(file, "PNG", optimize=True)
        return file.getvalue()


def _scenario(row: Row) -> Scenario:
    draw, digest = ImageDraw(row["data"], row["split"]), str(row.get("images_digest"))
    return Scenario(draw, digest, row["corruption"], row["severity"], row["constants"])


def _read(store: Store, scenario: Scenario) -> tuple[np.ndarray, np.ndarray] | None:
    cache = cache_beside(store.path)
    files = scenario.images_file(cache), scenario.labels_file(cache)
    if not all(file.is_file() for file in files):
        return None
    images, labels = (np.load(file, mmap_mode="r") for file in files)
    return images, np.asarray(labels)
