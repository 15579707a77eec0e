"""The history of streams: points, events and thumbnails, bounded in number and in bytes."""

import base64
import io
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from ncttt.adapt.batch import Trace
from ncttt.serve.dashboard import history as module
from ncttt.serve.dashboard.history import History
from ncttt.serve.dashboard.thumbnails import thumbnail
from ncttt.serve.drift import Drift

CLASSES = ("zero", "one", "two")


class Clock:
    """Time that passes when a test says so."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return 1_800_000_000.0 + self.now


@pytest.fixture
def clock(monkeypatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


def add(history: History, classes: list[int], stream: str = "door", drift: Drift | None = None, **known) -> None:
    trace = SimpleNamespace(**{"steps": 1, "stopped": "steps", "reset": False, "fell_back": False, **known})
    facts = {"images": len(classes), "changed": 1, "trace": trace, "outcome": "adapted", "version": 7, "drift": drift}
    history.batch(stream, facts, np.eye(3, dtype=np.float32)[classes])


def answer(classes: list[int]) -> SimpleNamespace:
    probabilities = np.eye(3, dtype=np.float32)[classes]
    return SimpleNamespace(probabilities=probabilities, source_probabilities=np.roll(probabilities, 1, axis=1))


def test_requests_of_one_batch_tell_of_it_once(clock):
    """Where batches are formed elsewhere, requests with the same version were one batch."""
    history = History(4, 0)
    trace = Trace(steps=2, stopped="collapsed", collapsed=True)
    for version, classes in ((7, [0, 1]), (7, [2]), (8, [2])):
        facts = {"trace": trace, "outcome": "collapsed", "batch": version, "version": version, "drift": None}
        history.request("door", SimpleNamespace(**vars(answer(classes)), **facts))
    told = history.told("door", 0, CLASSES)
    (point,) = told["points"]
    assert (point["images"], point["changed"], point["steps"], point["version"]) == (4, 4, 4, 8)
    assert point["classes"] == {"0": 1, "1": 1, "2": 2}
    assert [event["kind"] for event in told["events"]] == ["collapse", "collapse"]


def test_batches_of_a_moment_are_one_point(clock):
    history = History(4, 0)
    add(history, [0, 0, 2])
    add(history, [1])
    clock.now += module.SECONDS
    add(history, [2, 2])
    first, second = history.told("door", 0, CLASSES)["points"]
    assert (first["images"], first["changed"], first["steps"], first["total"]) == (4, 2, 2, 4)
    assert first["classes"] == {"0": 2, "1": 1, "2": 1}
    assert (second["images"], second["total"], second["version"]) == (2, 6, 7)


def test_what_is_new_can_be_asked_for(clock):
    history = History(4, 0)
    for _ in range(3):
        add(history, [0])
        clock.now += 1
    told = history.told("door", 0, CLASSES)
    add(history, [1])
    newer = history.told("door", told["next"], CLASSES)
    assert [point["total"] for point in newer["points"]] == [3, 4]  # the last of before may have grown
    assert newer["first"] == told["first"]


def test_no_more_is_kept_than_was_said(clock):
    history = History(2, 3)
    for number in range(module.MOST_POINTS + 50):
        add(history, [0], "a")
        history.event("a", "reset", f"reset {number}")
        history.show("a", np.zeros((5, 8, 8, 3), np.uint8), answer([0] * 5))
        clock.now += 1
    told = history.told("a", 0, CLASSES)
    assert len(told["points"]) == module.MOST_POINTS
    assert told["points"][-1]["total"] == module.MOST_POINTS + 50
    assert told["first"] == told["points"][0]["number"]
    assert len(told["events"]) == module.MOST_EVENTS
    assert len(told["shown"]) == 3
    for name in "bc":
        add(history, [0], name)
    assert [bool(history.told(name, 0, CLASSES)["points"]) for name in "abc"] == [False, True, True]


def test_an_alarm_begins_and_ends_once(clock):
    history = History(2, 0)
    for score in (0.1, 7.0, 9.0, 0.2, 0.3):
        add(history, [0], drift=Drift(score, score > 2, 64, "evidence"))
        clock.now += 1
    told = history.told("door", 0, CLASSES)
    assert [(event["kind"], event["total"]) for event in told["events"]] == [("alarm", 2), ("calm", 4)]
    assert "evidence" in told["events"][0]["text"]
    assert [point["alarm"] for point in told["points"]] == [False, True, True, False, False]


@pytest.mark.parametrize(
    ("trace", "kind"),
    [({"stopped": "collapsed"}, "collapse"), ({"reset": True}, "reset"), ({"fell_back": True}, "fallback")],
)
def test_learning_that_was_undone_is_an_event(clock, trace, kind):
    history = History(2, 0)
    add(history, [0], **trace)
    assert [event["kind"] for event in history.told("door", 0, CLASSES)["events"]] == [kind]


def test_what_an_operator_did_is_an_event():
    history = History(2, 0)
    for cause in ("reset", "frozen", "thawed", "rolled back to 4"):
        history.operated("door", cause)
    events = history.told("door", 0, CLASSES)["events"]
    assert [event["kind"] for event in events] == ["reset", "frozen", "thawed", "rolled back"]
    assert events[-1]["text"] == "rolled back to 4"


def test_labels_are_counted_where_there_is_a_stream(clock):
    history = History(2, 0)
    history.scored("door", True, False)  # it went to disk: nothing begins anew for it
    assert history.told("door", 0, CLASSES)["points"] == []
    add(history, [0, 1])
    history.scored("door", True, False)
    history.scored("door", 1, 1, labels=2)
    point = history.told("door", 0, CLASSES)["points"][0]
    assert (point["labels"], point["adapted"], point["source"]) == (3, 2, 1)


def test_thumbnails_tell_both_predictions(clock):
    history = History(2, 2)
    pixels = np.random.default_rng(0).integers(0, 255, (3, 8, 8, 3), np.uint8)
    history.show("door", pixels, answer([1, 2, 0]))  # of no stream
    add(history, [1, 2, 0])
    history.show("door", pixels, answer([1, 2, 0]), np.array([1, 0, 0]))
    history.show("door", pixels, answer([0, 0, 0]))  # too soon
    shown = history.told("door", 0, CLASSES)["shown"]
    assert [(each["label"], each["source_label"], each["truth"]) for each in shown] == [
        ("one", "two", "one"),
        ("two", "zero", "zero"),
    ]
    with Image.open(io.BytesIO(base64.b64decode(shown[0]["image"]))) as image:
        assert np.array_equal(np.asarray(image), pixels[0])


def test_a_thumbnail_is_small_and_the_mean_of_what_it_stands_for():
    image = np.random.default_rng(0).integers(0, 255, (224, 224, 3), np.uint8)
    small = thumbnail(image)
    assert small.shape == (56, 56, 3)
    assert np.abs(small[0, 0] - image[:4, :4].mean((0, 1))).max() <= 1
    own = thumbnail(image[:32, :32])
    assert own.base is None  # no large image stays in memory for it


def test_a_stream_that_begins_anew_has_newer_numbers(clock):
    history = History(2, 0)
    add(history, [0])
    last = history.told("door", 0, CLASSES)["next"]
    history.forget("door")
    assert history.told("door", 0, CLASSES)["points"] == []
    add(history, [0])
    assert history.told("door", 0, CLASSES)["first"] > last
