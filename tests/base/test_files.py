"""Files appear whole or not at all, and say clearly where they cannot."""

import multiprocessing
import os
import time
from pathlib import Path

import pytest

from ncttt import InputError
from ncttt.base.files import replace_file, replace_files, replacing, waiting
from ncttt.base.locks import locked


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_replaced_whole(tmp_path):
    path = tmp_path / "a.txt"
    for content in (b"first", b"second, longer", b""):
        replace_file(path, content)
        assert path.read_bytes() == content
    assert names(tmp_path) == ["a.txt"]


def test_a_stream_takes_its_place_only_when_it_ends_well(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")
    with replacing(path) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"

    def interrupted() -> None:
        with replacing(path) as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_bytes() == b"new"
    assert names(tmp_path) == ["a.txt"]


def test_two_streams_to_one_file_do_not_mix(tmp_path):
    path = tmp_path / "a.txt"
    with replacing(path) as first:
        with replacing(path) as second:
            second.write(b"second")
            first.write(b"first, longer")
        assert path.read_bytes() == b"second"
    assert path.read_bytes() == b"first, longer"
    assert names(tmp_path) == ["a.txt"]


def test_several_files_change_together_or_not_at_all(tmp_path, monkeypatch):
    one, two = tmp_path / "one", tmp_path / "two"
    replace_files({one: b"1", two: b"2"})
    synced = []

    def full(number: int) -> None:
        synced.append(number)
        if len(synced) == 2:
            raise OSError("No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        replace_files({one: b"new", two: b"new"})
    assert (one.read_bytes(), two.read_bytes()) == (b"1", b"2")
    assert names(tmp_path) == ["one", "two"]


def test_where_no_file_can_be_is_told_by_its_own_name(tmp_path):
    (tmp_path / "folder").mkdir()
    for path, why in ((tmp_path / "folder", "it is a folder"), (tmp_path / "none" / "a", "none is no folder")):
        with pytest.raises(InputError) as error:
            replace_file(path, b"x")
        assert str(error.value) == f"cannot write {path}: {why}" or str(error.value).endswith(why)
        with pytest.raises(InputError, match="cannot write"), replacing(path):
            pass
    with pytest.raises(InputError, match="it is a folder"):
        replace_files({tmp_path / "good": b"x", tmp_path / "folder": b"x"})
    assert names(tmp_path) == ["folder"]


def test_what_a_killed_writer_left_is_found_and_swept_by_the_next(tmp_path):
    path = tmp_path / "[b].json"
    left = tmp_path / ".[b].json.abc.new"
    left.write_bytes(b"half")
    assert waiting(path) == [left]
    with replacing(path) as file:
        assert len(waiting(path)) == 1  # that which is being filled
        replace_file(path, b"other")
        file.write(b"new")
    assert path.read_bytes() == b"new"
    assert names(tmp_path) == ["[b].json"]


def _hold(lock: Path, log: Path) -> None:
    with locked(lock):
        with log.open("a") as file:
            file.write("in ")
        time.sleep(0.2)
        with log.open("a") as file:
            file.write("out ")


def test_one_process_at_a_time_is_inside(tmp_path):
    start = multiprocessing.get_context("fork").Process
    processes = [start(target=_hold, args=(tmp_path / "lock", tmp_path / "log")) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(30)
    assert (tmp_path / "log").read_text() == "in out " * 3
