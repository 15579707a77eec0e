"""Streams: each its own, bounded in memory, back from disk as they were, in the hands of operators."""

import numpy as np
import pytest
import torch
from service import digits, settings_in

from ncttt import InputError
from ncttt.serve.served import Served
from ncttt.serve.snapshots import Snapshots
from ncttt.serve.streams import Stream, Streams, TooManyStreams, UnknownStream

TENT = {"method": "tent", "settings": {"lr": 0.01, "gather": 2}, "stop": "none", "steps": 1}
pytestmark = pytest.mark.filterwarnings("ignore::ncttt.adapt.SmallBatchWarning")


@pytest.fixture(scope="module")
def served(tmp_path_factory) -> Served:
    return Served(settings_in(tmp_path_factory.mktemp("served"), **TENT))


def streams_in(folder, served: Served, hot: int = 2, most: int = 9, said: list | None = None) -> Streams:
    store = Snapshots(folder / "states", 8)
    say = (lambda line: None) if said is None else said.append
    return Streams(served, store, hot=hot, most=most, save_seconds=1, say=say, on_cold=lambda name: None)


def images(first: int, count: int = 2) -> torch.Tensor:
    return torch.from_numpy(digits()[first : first + count].copy()).permute(0, 3, 1, 2).float().div(255)


def learn(streams: Streams, name: str, first: int) -> torch.Tensor:
    stream = streams.get(name)
    logits = stream.adapter(images(first))
    stream.changed("learned")
    return logits


def look(stream: Stream) -> torch.Tensor:
    with stream.adapter.kept():
        return stream.adapter(images(50, 6))


def test_streams_do_not_touch_each_other(tmp_path, served):
    streams, alone = streams_in(tmp_path, served), served.adapter()
    for first in range(0, 8, 2):
        learn(streams, "other", first + 20)
        assert torch.equal(learn(streams, "door", first), alone(images(first)))
    assert not torch.equal(look(streams.get("door")), look(streams.get("other")))


def test_a_stream_comes_back_from_disk_as_it_was(tmp_path, served):
    """Three streams in turn, in memory for one, against three adapters that stay."""
    streams, stay = streams_in(tmp_path, served, hot=1), {name: served.adapter() for name in "abc"}
    for first in range(0, 6, 2):
        for place, name in enumerate("abc"):
            assert torch.equal(learn(streams, name, first + 10 * place), stay[name](images(first + 10 * place)))
            assert len(streams.hot) == 1
    assert streams.facts("a").version == 3
    assert not streams.facts("a").hot
    assert streams.get("a").version == 3


def test_the_least_recently_used_goes_to_disk(tmp_path, served):
    streams = streams_in(tmp_path, served, hot=2)
    for name in ("a", "b", "a", "c"):
        learn(streams, name, 0)
    assert [stream.name for stream in streams.hot] == ["a", "c"]


def test_there_is_a_most_of_streams(tmp_path, served):
    streams = streams_in(tmp_path, served, hot=1, most=2)
    learn(streams, "a", 0)
    learn(streams, "b", 0)
    with pytest.raises(TooManyStreams, match="2 streams"):
        streams.get("c")
    streams.delete("a")
    learn(streams, "c", 0)
    assert streams.names() == ["b", "c"]
    with pytest.raises(UnknownStream):
        streams.facts("a")


def test_a_stream_rolls_back_and_forward(tmp_path, served):
    streams = streams_in(tmp_path, served)
    learn(streams, "door", 0)
    streams.save(streams.get("door")).result()
    good = look(streams.get("door"))
    learn(streams, "door", 10)
    bad = look(streams.get("door"))
    assert not torch.equal(good, bad)
    facts = streams.roll_back("door", 1)
    assert (facts.version, facts.saved, facts.versions) == (3, 3, [1, 2, 3])
    assert torch.equal(look(streams.get("door")), good)
    streams.roll_back("door", 2)  # the state before was saved, so it can be undone
    assert torch.equal(look(streams.get("door")), bad)
    with pytest.raises(UnknownStream, match="no version 99"):
        streams.roll_back("door", 99)


def test_reset_freeze_and_thaw_are_on_disk_at_once(tmp_path, served):
    streams = streams_in(tmp_path, served)
    learn(streams, "door", 0)
    streams.reset("door")
    assert torch.equal(look(streams.get("door")), look(Stream("", served.adapter(), None)))
    streams.freeze("door", True)
    again = streams_in(tmp_path, served)  # as after a kill: nothing was closed
    assert again.get("door").frozen
    assert again.get("door").version == 3
    assert not again.freeze("door", False).frozen


def test_a_damaged_snapshot_gives_way_to_the_one_before(tmp_path, served):
    streams = streams_in(tmp_path, served)
    learn(streams, "door", 0)
    streams.save(streams.get("door")).result()
    good = look(streams.get("door"))
    learn(streams, "door", 10)
    streams.save(streams.get("door")).result()
    newest = tmp_path / "states" / "door" / "00000002.safetensors"
    newest.write_bytes(newest.read_bytes()[:-1])
    said: list[str] = []
    again = streams_in(tmp_path, served, said=said).get("door")
    assert torch.equal(look(again), good)
    assert again.version == 3  # a number is never given twice
    assert "does not go on from version 2" in said[0]


def test_a_state_of_other_weights_is_not_used(tmp_path, served):
    streams = streams_in(tmp_path, served)
    learn(streams, "door", 0)
    streams.close()
    other = Served(settings_in(tmp_path, **TENT))
    other.weights = "f" * 64
    said: list[str] = []
    again = streams_in(tmp_path, other, said=said)
    assert torch.equal(look(again.get("door")), look(Stream("", served.adapter(), None)))
    assert "other weights" in said[0]
    with pytest.raises(InputError, match="other weights"):
        again.roll_back("door", 1)


def test_a_disk_that_refuses_keeps_the_stream_in_memory(tmp_path, served, monkeypatch):
    said: list[str] = []
    streams = streams_in(tmp_path, served, hot=1, said=said)
    learn(streams, "a", 0)
    before = look(streams.get("a"))

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Snapshots, "write", full)
    with pytest.raises(OSError, match="No space"):
        streams.get("b")
    assert torch.equal(look(streams.get("a")), before)
    assert "cannot be saved" in said[0]
    monkeypatch.undo()
    streams.get("b")
    assert streams.facts("a").saved == 1


def test_a_thousand_streams_need_the_memory_of_a_few(tmp_path, served):
    streams = streams_in(tmp_path, served, hot=2, most=1000)
    made: list[int] = []
    original = served.adapter
    try:
        served.adapter = lambda: made.append(1) or original()  # type: ignore[method-assign]
        for number in range(40):
            streams.get(f"s{number}")
    finally:
        served.adapter = original  # type: ignore[method-assign]
    assert len(streams) == 40
    assert len(made) == 2  # adapters of streams that went to disk are used again


def test_saving_waits_for_its_time(tmp_path, served):
    streams = streams_in(tmp_path, served)
    learn(streams, "door", 0)
    streams.save_due()
    streams.save_due(everything=True)
    learn(streams, "door", 2)
    streams.save_due()  # a second has not passed
    streams._writer.shutdown(wait=True)
    assert streams.get("door").saved == 1
    assert np.diff(streams.facts("door").versions).size == 0
