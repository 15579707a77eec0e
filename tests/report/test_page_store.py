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
from ncttt.report.page import examples_of, shifts_of, streams_of, verdicts_of, write_page

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
    assert {(example.corruption, example.method) for example in found} == {("fog", "NC-TTT")}


def test_without_images_or_predictions_there_are_no_examples(store, rows):
    assert examples_of(store, rows, 6) == []
    assert not cache_beside(store.path).exists()


def test_the_page_says_what_is_significant_and_what_is_no_difference(store, rows, images, tmp_path):
    verdicts = verdicts_of(store, rows)
    page = read_page(write_page(rows, tmp_path, examples=examples_of(store, rows, 2), verdicts=verdicts))
    lines = {
        line.one("th").text: line.all("td")[0].text
        for line in page.one("section", id="significance").one("tbody").all("tr")
    }
    assert lines["NC-TTT against PTBN"] == "no difference at all"
    assert lines["NC-TTT against Source"].startswith("+47.50")
    assert lines["NC-TTT against Source"].endswith("is significant")
    assert "is significant" in page.one("section", id="methods").text
    assert "cannot be told" not in page.one("section", id="short").text
    sources = [image.attributes["src"] for image in page.one("section", id="examples").all("img")]
    assert all(base64.b64decode(source.partition(",")[2]).startswith(b"\x89PNG") for source in sources)
    assert len(sources) == 2


def test_predictions_of_one_method_alone_prove_nothing(store, rows):
    store._base.execute("DELETE FROM predictions WHERE key = ?", (rows[0]["key"],))
    assert "source" not in {one.second.method for one in verdicts_of(store, rows)}
    assert {one.second.method for one in verdicts_of(store, rows) if one.first.method == "tent"} == {"ptbn"}


def test_too_few_batches_give_no_interval(store, rows):
    for row in rows:
        again = row | {"key": f"{row['key']} in two batches", "batch_size": IMAGES // 2}
        store.write(again, store.predicted(row["key"]), store.right(row["key"]))
    verdicts = verdicts_of(store, store.rows(batch_size=IMAGES // 2))
    assert {each.text for each in verdicts} >= {"+47.50, with too few batches to tell whether it is significant"}


def test_the_first_sentence_calls_a_difference_within_its_interval_indistinguishable(store, rows, tmp_path):
    page = read_page(write_page(rows, tmp_path, verdicts=verdicts_of(store, rows)))
    assert page.one("p", class_="lead").text == (
        "Under fog on CIFAR-10 at severity 5, NC-TTT (63.0 %), TENT (61.0 %) and PTBN (60.0 %) lead 4 methods and are "
        "statistically indistinguishable; NC-TTT gains +23.0 points over the model without adaptation."
    )


def test_a_stream_has_the_accuracy_of_each_batch(store, rows, tmp_path):
    streams = streams_of(store, rows)
    source = next(stream for stream in streams if stream.column.method == "source")
    right = (order_of(LABELS, "random", 0) % 2 == 0).reshape(-1, 5)
    assert source.accuracy == pytest.approx(100 * right.mean(1))
    assert source.ends == tuple(range(1, 9))
    page = read_page(write_page(rows, tmp_path, streams=streams))
    lines = {line.one("th").text: line.all("td") for line in page.one("section", id="stream").one("tbody").all("tr")}
    assert [float(cell.text) for cell in lines["Source"]] == pytest.approx(100 * right.mean(1))


def test_rows_without_predictions_have_no_stream(store, rows):
    store._base.execute("DELETE FROM predictions")
    assert streams_of(store, rows) == []


def test_a_long_stream_is_shown_by_means_of_neighbours(store, rows):
    for row in rows:
        again = row | {"key": f"{row['key']} one by one", "batch_size": 1, "images": 400}
        right = np.arange(400)[None] < 300
        store.write(again, np.zeros((1, 400), int), right)
    stream = streams_of(store, store.rows(batch_size=1))[0]
    assert (len(stream.accuracy), stream.ends[-1]) == (60, 400)
    assert (stream.accuracy[0], stream.accuracy[-1]) == (100.0, 0.0)


def test_one_image_shows_every_shift(store, rows, images, tmp_path):
    clean = Scenario(ImageDraw("cifar10", "test"), "abc", "fog", 5, "cifar").clean
    assert shifts_of(store, rows) == []  # one image alone compares nothing
    np.save(cache_beside(store.path) / f"{clean.name}.npy", 255 - images)
    shown = shifts_of(store, rows)
    assert [(shift.corruption, shift.severity) for shift in shown] == [("clean", 0), ("fog", 5)]
    assert [Image.open(BytesIO(shift.png)).getpixel((0, 0))[0] for shift in shown] == [255, 0]
    assert all(example.original for example in examples_of(store, rows, 3))
    section = read_page(write_page(rows, tmp_path, shifts=shown)).one("section", id="examples")
    assert [image.attributes["alt"] for image in section.all("img")] == [
        "An image of CIFAR-10, without a shift",
        "An image of CIFAR-10, under Fog at severity 5",
    ]
