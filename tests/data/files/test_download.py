"""Downloads against a real server on this machine: breaks, resumption, wrong bytes, no server, full disk."""

import hashlib
import time
from pathlib import Path

import pytest

from ncttt.base.errors import InputError, Unreachable
from ncttt.data.files.download import download

BODY = bytes(range(256)) * 4096
MD5 = "md5:" + hashlib.md5(BODY).hexdigest()


@pytest.fixture
def served(server):
    server.files["set.bin"] = BODY
    return server


def test_arrives_whole_and_leaves_nothing_else(served, tmp_path):
    seen = []
    target = tmp_path / "set.bin"
    download(served.url("set.bin"), target, MD5, progress=lambda done, total: seen.append((done, total)))
    assert target.read_bytes() == BODY
    assert [path.name for path in tmp_path.iterdir()] == ["set.bin"]
    assert seen[-1] == (len(BODY), len(BODY))


def test_a_broken_transfer_goes_on_where_it_stopped(served, tmp_path):
    served.break_after = [300_000, 400_000]
    download(served.url("set.bin"), tmp_path / "set.bin", MD5, wait=0)
    assert (tmp_path / "set.bin").read_bytes() == BODY
    starts = [int(asked.removeprefix("bytes=").rstrip("-")) for asked in served.asked if asked]
    assert served.asked[0] is None
    assert len(starts) == 2
    assert 0 < starts[0] <= 300_000 < starts[1] <= 700_000


def test_the_next_call_resumes_what_an_earlier_one_left(served, tmp_path):
    (tmp_path / "set.bin.part").write_bytes(BODY[:1000])
    download(served.url("set.bin"), tmp_path / "set.bin", MD5)
    assert served.asked == ["bytes=1000-"]
    assert (tmp_path / "set.bin").read_bytes() == BODY


def test_a_complete_part_is_not_fetched_again(served, tmp_path):
    (tmp_path / "set.bin.part").write_bytes(BODY)
    download(served.url("set.bin"), tmp_path / "set.bin", MD5)
    assert served.asked == [f"bytes={len(BODY)}-"]
    assert (tmp_path / "set.bin").read_bytes() == BODY


def test_a_part_longer_than_the_file_is_thrown_away(served, tmp_path):
    (tmp_path / "set.bin.part").write_bytes(BODY + b"more")
    download(served.url("set.bin"), tmp_path / "set.bin", MD5, wait=0)
    assert (tmp_path / "set.bin").read_bytes() == BODY


def test_starts_again_when_the_server_knows_no_ranges(served, tmp_path):
    served.ranges = False
    (tmp_path / "set.bin.part").write_bytes(b"x" * 1000)
    download(served.url("set.bin"), tmp_path / "set.bin", MD5)
    assert (tmp_path / "set.bin").read_bytes() == BODY


def test_wrong_checksum_is_an_error_and_nothing_stays(served, tmp_path):
    served.files["set.bin"] = BODY[::-1]
    with pytest.raises(InputError, match=r"set\.bin: wrong checksum"):
        download(served.url("set.bin"), tmp_path / "set.bin", MD5)
    assert list(tmp_path.iterdir()) == []


def test_an_existing_file_is_kept_when_the_new_one_cannot_be_had(served, tmp_path):
    (tmp_path / "set.bin").write_bytes(b"older version")
    served.files["set.bin"] = BODY[::-1]
    with pytest.raises(InputError):
        download(served.url("set.bin"), tmp_path / "set.bin", MD5)
    assert (tmp_path / "set.bin").read_bytes() == b"older version"


@pytest.mark.parametrize("failure", [429, 500, 503])
def test_a_busy_server_is_asked_again(served, tmp_path, failure):
    served.failures, served.failure = 2, failure
    download(served.url("set.bin"), tmp_path / "set.bin", MD5, wait=0)
    assert len(served.asked) == 3


def test_a_connection_lost_before_the_first_byte_is_made_again(served, tmp_path):
    served.hang_ups = 2
    download(served.url("set.bin"), tmp_path / "set.bin", MD5, wait=0)
    assert (tmp_path / "set.bin").read_bytes() == BODY


def test_a_server_that_only_hangs_up_is_given_up(served, tmp_path):
    served.hang_ups = 100
    with pytest.raises(Unreachable, match=r"set\.bin"):
        download(served.url("set.bin"), tmp_path / "set.bin", MD5, wait=0)
    assert len(served.asked) == 4


def test_a_transfer_that_gets_on_may_break_often(served, tmp_path):
    served.break_after = [100_000] * 10
    download(served.url("set.bin"), tmp_path / "set.bin", MD5, wait=0)
    assert (tmp_path / "set.bin").read_bytes() == BODY
    assert len(served.asked) == 11


def test_little_is_lost_by_a_break(served, tmp_path):
    served.break_after = [50_000]
    download(served.url("set.bin"), tmp_path / "set.bin", MD5, wait=0)
    assert served.asked == [None, "bytes=32768-"]


def test_another_piece_is_not_taken_for_the_file(served, tmp_path):
    served.wrong_ranges = True
    (tmp_path / "set.bin.part").write_bytes(BODY[:1000])
    download(served.url("set.bin"), tmp_path / "set.bin", None, wait=0)
    assert (tmp_path / "set.bin").read_bytes() == BODY


def test_a_file_that_is_not_there_is_not_asked_for_twice(served, tmp_path):
    with pytest.raises(Unreachable, match="404"):
        download(served.url("gone.bin"), tmp_path / "gone.bin", MD5)
    assert len(served.asked) == 1


def test_no_server_fails_at_once_and_names_the_address(server, tmp_path):
    url = server.url("set.bin")
    server.close()
    start = time.monotonic()
    with pytest.raises(Unreachable, match=r"127\.0\.0\.1.*set\.bin"):
        download(url, tmp_path / "set.bin", MD5)
    assert time.monotonic() - start < 5


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_named_and_the_target_does_not_appear(served, tmp_path):
    # /dev/full answers every write with "no space left on device".
    (tmp_path / "set.bin.part").symlink_to("/dev/full")
    with pytest.raises(OSError, match=r"No space left.*set\.bin\.part"):
        download(served.url("set.bin"), tmp_path / "set.bin", MD5)
    assert not (tmp_path / "set.bin").exists()
