"""Who owns a stream: one process at a time, and what a former owner writes late is not acknowledged."""

import multiprocessing
import random
import time

import pytest
import torch

from ncttt import InputError
from ncttt.serve.ownership import AHEAD, NOBODY, Claims, Lost, Owned
from ncttt.serve.snapshots import Facts, Snapshots

PROCESSES, SECONDS = 4, 3.0


def claims_in(folder, *owners: str) -> list[Claims]:
    return [Claims(folder, owner) for owner in owners]


def test_a_stream_has_one_owner_until_it_is_given_up(tmp_path):
    a, b = claims_in(tmp_path, "a", "b")
    assert a.owner("door") == NOBODY
    assert a.claim("door") is None
    assert a.owner("door") == b.owner("door") == "a"
    with pytest.raises(Owned) as error:
        b.claim("door")
    assert (error.value.stream, error.value.owner) == ("door", "a")
    a.release("door")
    assert b.claim("door") is None  # all of its state is on disk
    with pytest.raises(Lost):
        a.check("door")


def test_a_stream_that_is_taken_is_lost_to_its_owner(tmp_path):
    a, b, c = claims_in(tmp_path, "a", "b", "c")
    a.claim("door")
    assert b.claim("door", take_from="a", saved=7) == 7 + AHEAD  # not all of its state may be on disk
    assert not a.holds("door")
    a.release("door")  # too late: it is not its own to give up
    assert b.holds("door")
    with pytest.raises(Owned):
        c.claim("door", take_from="a")
    assert len(list((tmp_path / "door").iterdir())) == 1


def test_a_late_snapshot_is_refused_and_removed(tmp_path):
    a, b = claims_in(tmp_path, "a", "b")
    a.claim("door")
    taken = iter([False, True])

    def fence(stream):
        if next(taken):  # between the file and the look at the claim
            b.claim("door", take_from="a")
        a.check(stream)

    with pytest.raises(Lost):
        Snapshots(tmp_path, 8, fence).write(facts("door", 1), {})
    assert Snapshots(tmp_path, 8).versions("door") == []
    with pytest.raises(Lost):
        Snapshots(tmp_path, 8, a.check).write(facts("door", 1), {})


def test_a_folder_without_hard_links_is_one_line(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("os.link", refuse)
    with pytest.raises(InputError, match="hard links"):
        Claims(tmp_path, "a").claim("door")


def facts(stream: str, version: int) -> Facts:
    return Facts(stream, version, False, 0, 0.0, "test", "0" * 64)


def own_and_write(folder, owner, until, told):
    """Take the stream from whoever has it, write some versions, give it up or not; tell what was seen and when."""
    torch.set_num_threads(1)
    claims, chance = Claims(folder, owner), random.Random(owner)
    store = Snapshots(folder, 3, claims.check)
    seen, acknowledged = [], []
    while time.monotonic() < until:
        before = time.monotonic()
        try:
            saved = max(store.versions("door"), default=0)
            floor = claims.claim("door", claims.owner("door"), saved)
        except Owned:  # another one took it meanwhile
            continue
        newest = max(store.versions("door"), default=0)
        seen.append((before, newest))
        first = newest + 1 if floor is None else max(newest + AHEAD, floor) + 1
        try:
            for version in range(first, first + chance.randint(1, 6)):
                store.write(facts("door", version), {"weights": torch.zeros(9)})
                acknowledged.append((time.monotonic(), version))
        except Lost:
            continue
        if chance.random() < 0.5:
            claims.release("door")
    told.put((owner, seen, acknowledged))


def test_processes_that_fight_for_a_stream_lose_nothing_acknowledged(tmp_path):
    fork = multiprocessing.get_context("fork")
    told, until = fork.Queue(), time.monotonic() + SECONDS
    processes = [fork.Process(target=own_and_write, args=(tmp_path, f"p{n}", until, told)) for n in range(PROCESSES)]
    for process in processes:
        process.start()
    results = [told.get(timeout=60) for _ in processes]
    for process in processes:
        process.join(60)
    acknowledged = sorted(pair for _, _, pairs in results for pair in pairs)
    versions = [version for _, version in acknowledged]
    assert min(len(pairs) for _, _, pairs in results) > 5  # all had their turns
    assert len(set(versions)) == len(versions)  # no version stands for two states
    for _, seen, _ in results:
        for moment, newest in seen:
            assert newest >= max((version for when, version in acknowledged if when < moment), default=0)


@pytest.mark.parametrize("text", ["", "a", "a b c d", "a b x"])
def test_a_damaged_claim_can_be_taken(tmp_path, text):
    a, b = Claims(tmp_path, "a"), Claims(tmp_path, "b")
    a.claim("door")
    (claim,) = (tmp_path / "door").glob("owner.*")
    claim.write_text(text)
    assert not a.holds("door")
    with pytest.raises(Owned) as error:
        b.claim("door", saved=7)
    assert b.claim("door", take_from=error.value.owner, saved=7) == 7 + AHEAD
    assert b.holds("door")
