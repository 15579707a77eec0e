"""What only a store gives to a page: examples with images, and what is significant."""

import base64
from io import BytesIO

import numpy as np
import pytest
from page_reader import read_page
from page_rows import page_rows
from PIL import Image

from ncttt.benchmark.draws import ImageDraw
from ncttt.benchmark.driver import cache_beside
from ncttt.benchmark.scenarios import Scenario
from ncttt.data.orders import order_of
from ncttt.report.page import examples_of, verdicts_of, write_page

IMAGES = 40
LABELS = np.arange(IMAGES) % 10


@pytest.fixture
def rows(store) -> list[dict]:
    """Fog, with predictions: the source is right on even places of the set, the steps mend all but place 0."""
    rows = [
        one | {"images": IMAGES, "batch_size": 5, "images_digest": "abc"} for one in page_rows(corruptions=("fog",))
    ]
    places = order_of(LABELS, "random", 0)
    for row in rows:
        right = places % 2 == 0 if row["method"] == "source" else places != 0
        truth = LABELS[places]
        store.write(row, np.where(right, truth, (truth + 1) % 10)[None], right[None])
    return rows


@pytest.fixture
def images(store, rows) -> np.ndarray:
    """Images beside the store, each of a grey that tells its place."""
    found = np.zeros((IMAGES, 8, 8, 3), np.uint8) + np.arange(IMAGES, dtype=np.uint8)[:, None, None, None]
    scenario = Scenario(ImageDraw("cifar10", "test"), "abc", "fog", 5, "cifar")
    cache = cache_beside(store.path)
    cache.mkdir()
    np.save(cache / f"{scenario.name}.npy", found)
    np.save(cache / "abc-labels.npy", LABELS)
    return found


def test_examples_are_the_images_whose_prediction_changed(store, rows, images):
    found = examples_of(store, rows, 6)
    assert len(found) == 6
    places = [Image.open(BytesIO(example.png)).getpixel((0, 0))[0] for example in found]
    assert places[1] == 0  # the only one that was broken comes second, after one that was mended
    names = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
    assert [example.truth for example in found] == [names[LABELS[place]] for place in places]
    for place, example in zip(places, found, strict=True):
        assert (example.before == example.truth) == (place % 2 == 0)
        assert (example.after == example.truth) == (place != 0)
    assert {(example.corruption, example.method) for example in found} == {("fog", "nc_ttt")}


def test_without_images_or_predictions_there_are_no_examples(store, rows):
    assert examples_of(store, rows, 6) == []
    assert not cache_beside(store.path).exists()


def test_the_page_says_what_is_significant_and_what_is_no_difference(store, rows, images, tmp_path):
    verdicts = verdicts_of(store, rows)
    page = read_page(write_page(rows, tmp_path, examples=examples_of(store, rows, 2), verdicts=verdicts))
    text = page.one("section", id="significance").text
    assert "nc_ttt against ptbn: no difference at all" in text
    assert "nc_ttt against source: +47.50" in text
    assert "is significant" in page.one("section", id="short").text
    assert "cannot be told" not in page.one("section", id="short").text
    sources = [image.attributes["src"] for image in page.one("section", id="examples").all("img")]
    assert all(base64.b64decode(source.partition(",")[2]).startswith(b"\x89PNG") for source in sources)
    assert len(sources) == 2


def test_predictions_of_one_method_alone_prove_nothing(store, rows):
    store._base.execute("DELETE FROM predictions WHERE key = ?", (rows[0]["key"],))
    assert {one.second.method for one in verdicts_of(store, rows)} == {"ptbn"}


def test_too_few_batches_give_no_interval(store, rows):
    for row in rows:
        again = row | {"key": f"{row['key']} in two batches", "batch_size": IMAGES // 2}
        store.write(again, store.predicted(row["key"]), store.right(row["key"]))
    verdicts = verdicts_of(store, store.rows(batch_size=IMAGES // 2))
    assert {each.text for each in verdicts} >= {"+47.50 (too few batches for an interval) is not significant"}
