"""Streams of two replicas in one folder: they move with all they know, and what was not saved is told by a jump."""

import pytest
import torch
from service import digits, settings_in

from ncttt.serve.owned_streams import AHEAD, OwnedStreams
from ncttt.serve.ownership import Claims, Lost, Owned
from ncttt.serve.served import Served
from ncttt.serve.snapshots import Snapshots
from ncttt.serve.streams import TooManyStreams, UnknownStream

TENT = {"method": "tent", "settings": {"lr": 0.01, "gather": 2}, "stop": "none", "steps": 1}
pytestmark = pytest.mark.filterwarnings("ignore::ncttt.adapt.SmallBatchWarning")


@pytest.fixture(scope="module")
def served(tmp_path_factory) -> Served:
    return Served(settings_in(tmp_path_factory.mktemp("served"), **TENT))


@pytest.fixture
def both(tmp_path, served):
    return [replica(tmp_path, served, name) for name in ("a", "b")]


def replica(folder, served: Served, name: str, hot: int = 2, most: int = 9) -> OwnedStreams:
    (folder / "states").mkdir(exist_ok=True)
    claims = Claims(folder / "states", name)
    store = Snapshots(folder / "states", 8, claims.check)
    nothing = {"say": lambda line: None, "on_cold": lambda name: None}
    return OwnedStreams(served, store, claims, hot=hot, most=most, save_seconds=1e9, **nothing)


def learn(streams: OwnedStreams, name: str, first: int) -> torch.Tensor:
    stream = streams.get(name)
    logits = stream.adapter(torch.from_numpy(digits()[first : first + 2].copy()).permute(0, 3, 1, 2).float().div(255))
    stream.changed("learned")
    streams.settle(stream)
    return logits


def test_a_stream_moves_with_all_it_knows(both, served):
    a, b = both
    alone = served.adapter()
    for first, streams in enumerate((a, a, b, b, a)):
        if first in (2, 4):
            with pytest.raises(Owned) as error:
                streams.get("door")
            {"a": a, "b": b}[error.value.owner].give_up("door")
        images = torch.from_numpy(digits()[first : first + 2].copy()).permute(0, 3, 1, 2).float().div(255)
        assert torch.equal(learn(streams, "door", first), alone(images))
    assert a.facts("door").version == 5
    assert b.facts("door").version == b.facts("door").saved == 4
    assert not b.facts("door").hot


def test_a_stream_taken_from_a_dead_owner_jumps_beyond_what_was_answered(both):
    a, b = both
    for first in range(3):
        learn(a, "door", first)
    a.save(a.get("door")).result()
    for first in range(3):
        learn(a, "door", first)  # answered, and never saved
    b.take("door", "a")
    facts = b.facts("door")
    assert facts.version == facts.saved == 3 + AHEAD + 1 > a.facts("door").version == 6
    with pytest.raises(Lost):
        a.settle(a.hot[0])  # a batch that was in its hands is not answered
    with pytest.raises(Lost):
        a.save(a.hot[0]).result()
    with pytest.raises(Owned):
        a.get("door")
    assert not a.hot
    assert b.facts("door").versions == [3, 3 + AHEAD + 1]


def test_a_replica_notices_that_a_stream_was_taken(both):
    a, b = both
    learn(a, "door", 0)
    b.take("door", "a")
    a.save_due(everything=True)
    assert not a.hot


def test_no_version_is_far_from_one_on_disk(both):
    stream = both[0].get("door")
    for _ in range(AHEAD + 5):
        stream.changed("learned")
        both[0].settle(stream)
        assert stream.version - stream.saved < AHEAD


def test_what_one_begins_and_deletes_the_other_knows(both):
    a, b = both
    learn(a, "door", 0)
    assert b.names() == ["door"]
    with pytest.raises(Owned):
        b.delete("door")
    a.give_up("door")
    b.delete("door")
    assert a.names() == []
    with pytest.raises(UnknownStream):
        a.facts("door")
    assert learn(a, "door", 0) is not None
    assert a.facts("door").version == 1


def test_streams_of_all_replicas_count(tmp_path, served):
    a, b = (replica(tmp_path, served, name, hot=1, most=2) for name in "ab")
    for name in ("one", "two"):
        learn(a, name, 0)
    with pytest.raises(TooManyStreams):
        b.get("three")
    assert b.get("one").version == 1  # it went to disk, and nobody owned it


def test_an_end_gives_up_everything(both):
    a, b = both
    learn(a, "door", 0)
    a.close()
    assert b.get("door").version == 1
