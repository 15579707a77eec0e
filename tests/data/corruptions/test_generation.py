"""Whole sets on disk: the layout of CIFAR-C, the same bytes however made, nothing lost, nothing overwritten."""

import errno
import hashlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
import tracemalloc
from contextlib import contextmanager

import numpy as np
import pytest
from PIL import Image

from ncttt.base.errors import InputError
from ncttt.base.files import waiting
from ncttt.data.corruptions import CORRUPTIONS, corrupt, generate, generation

NAMES = ["fog", "gaussian_noise", "jpeg_compression"]


@pytest.fixture
def small_pieces(monkeypatch):
    """Ten images a piece, so that small sets have many."""
    monkeypatch.setattr(generation, "_PIECE_VALUES", 10 * 32 * 32 * 3)


def a_set(n=25):
    images = np.random.default_rng(0).integers(0, 256, (n, 32, 32, 3), np.uint8)
    return images, np.arange(n) % 10


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_layout_is_that_of_cifar_c(tmp_path, small_pieces):
    images, labels = a_set()
    out = generate(images, labels, tmp_path / "new" / "set", severities=[1, 2, 5], seed=4, workers=1)
    assert {path.name for path in out.iterdir()} == {f"{name}.npy" for name in CORRUPTIONS} | {
        "labels.npy",
        "corruptions.json",
    }
    for name in CORRUPTIONS:
        stacked = np.load(out / f"{name}.npy", allow_pickle=False)
        assert stacked.shape == (75, 32, 32, 3)
        assert stacked.dtype == np.uint8
        for block, severity in enumerate([1, 2, 5]):
            want = corrupt(images, name, severity, seed=4)
            np.testing.assert_array_equal(stacked[block * 25 : block * 25 + 25], want)
    np.testing.assert_array_equal(np.load(out / "labels.npy"), np.tile(labels, 3))


def test_metadata_tells_how_it_was_made(tmp_path):
    images, labels = a_set(3)
    told = json.loads(
        (generate(images, labels, tmp_path, corruptions=["fog"], seed=9) / "corruptions.json").read_text()
    )
    assert told["seed"] == 9
    assert told["constants"] == "cifar"
    assert told["severities"] == [1, 2, 3, 4, 5]
    assert told["frost"] == "procedural"
    assert told["constant_values"]["fog"] == [[0.2, 3], [0.5, 3], [0.75, 2.5], [1, 2], [1.5, 1.75]]
    assert told["images"] == [3, 32, 32, 3]
    assert told["images_sha256"] == hashlib.sha256(images.tobytes()).hexdigest()
    assert {"version", "libraries"} <= set(told)


def test_metadata_tells_the_hash_of_each_finished_file(tmp_path):
    options = {"severities": [3], "workers": 1}
    out = generate(*a_set(3), tmp_path, corruptions=["snow", "fog"], **options)
    whole = (out / "corruptions.json").read_text()
    assert json.loads(whole)["files"] == {
        name: hashlib.sha256((out / name).read_bytes()).hexdigest() for name in ("fog.npy", "labels.npy", "snow.npy")
    }
    told = json.loads(whole)
    del told["files"]["fog.npy"]  # as after a kill just before it was written
    (out / "corruptions.json").write_text(json.dumps(told))
    generate(*a_set(3), tmp_path, corruptions=["fog"], **options)
    assert (out / "corruptions.json").read_text() == whole


def test_a_remade_file_is_hashed_anew(tmp_path):
    images, labels = a_set(3)
    out = generate(images, labels, tmp_path, corruptions=["fog"], severities=[3])
    (out / "labels.npy").unlink()
    generate(images, labels.astype(np.uint8), out, corruptions=["fog"], severities=[3])
    told = json.loads((out / "corruptions.json").read_text())
    assert told["files"]["labels.npy"] == hashlib.sha256((out / "labels.npy").read_bytes()).hexdigest()


def test_labels_of_another_integer_type_are_the_same_labels(tmp_path):
    images, labels = a_set(3)
    generate(images, labels, tmp_path, corruptions=["fog"], severities=[3])
    before = contents(tmp_path)
    generate(images, labels.astype(np.uint8), tmp_path, corruptions=["fog"], severities=[3])
    assert contents(tmp_path) == before


def test_metadata_tells_of_photographs(tmp_path):
    (tmp_path / "ice").mkdir()
    Image.new("RGB", (300, 300)).save(tmp_path / "ice" / "a.png")
    images, labels = a_set(3)
    options = {"corruptions": ["frost"], "severities": [5]}
    out = generate(images, labels, tmp_path / "out", frost=tmp_path / "ice", **options)
    assert json.loads((out / "corruptions.json").read_text())["frost"].startswith("1 photographs, sha256 ")
    np.testing.assert_array_equal(np.load(out / "frost.npy"), corrupt(images, "frost", 5, frost=tmp_path / "ice"))
    with pytest.raises(InputError, match="other settings"):
        generate(images, labels, out, **options)


def test_workers_do_not_matter(tmp_path, small_pieces):
    images, labels = a_set()
    one = generate(images, labels, tmp_path / "one", corruptions=NAMES, severities=[3, 5], workers=1)
    two = generate(images, labels, tmp_path / "two", corruptions=NAMES, severities=[3, 5], workers=2)
    assert contents(one) == contents(two)


def test_what_is_finished_is_not_done_again(tmp_path, small_pieces, monkeypatch):
    images, labels = a_set()
    out = generate(images, labels, tmp_path, corruptions=NAMES, severities=[3])
    before = contents(out)
    (out / "fog.npy").unlink()
    asked = []
    monkeypatch.setattr(generation, "corrupt", lambda x, name, *a, **k: asked.append(name) or corrupt(x, name, *a, **k))
    generate(images, labels, tmp_path, corruptions=NAMES, severities=[3])
    assert asked == ["fog"] * 3
    assert contents(out) == before


def test_more_corruptions_can_be_added_later(tmp_path):
    images, labels = a_set(5)
    generate(images, labels, tmp_path, corruptions=["fog"], severities=[3])
    generate(images, labels, tmp_path, corruptions=["snow"], severities=[3])
    assert {"fog.npy", "snow.npy"} <= set(contents(tmp_path))


SLOW_RUN = """
import sys, time
import numpy as np
from ncttt.data.corruptions import corrupt, generate, generation

def slowly(*arguments, **options):
    time.sleep(0.15)
    return corrupt(*arguments, **options)

generation._PIECE_VALUES = 10 * 32 * 32 * 3
generation.corrupt = slowly
images = np.random.default_rng(0).integers(0, 256, (25, 32, 32, 3), np.uint8)
generate(images, np.arange(25) % 10, sys.argv[1], corruptions=["fog", "gaussian_noise", "jpeg_compression"], workers=1)
"""


def test_a_killed_run_redoes_the_file_in_hand_and_gives_the_same_bytes(tmp_path, small_pieces, monkeypatch):
    images, labels = a_set()
    whole = generate(images, labels, tmp_path / "whole", corruptions=NAMES, workers=1)
    out = tmp_path / "killed"
    run = subprocess.Popen([sys.executable, "-c", SLOW_RUN, str(out)])
    enough = 2 * 10 * 32 * 32 * 3
    wait_for(lambda: any(half.stat().st_size > enough for half in waiting(out / "gaussian_noise.npy")), run)
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    assert (out / "fog.npy").read_bytes() == (whole / "fog.npy").read_bytes()
    assert not (out / "gaussian_noise.npy").exists()
    asked = []
    monkeypatch.setattr(generation, "corrupt", lambda x, name, *a, **k: asked.append(name) or corrupt(x, name, *a, **k))
    generate(images, labels, out, corruptions=NAMES, workers=1)
    assert asked == ["gaussian_noise"] * 15 + ["jpeg_compression"] * 15
    assert contents(out) == contents(whole)


def test_workers_end_when_their_parent_is_killed(tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    run = subprocess.Popen([sys.executable, str(script), str(tmp_path)])
    wait_for(lambda: len(list(tmp_path.glob("*.pid"))) == 2, run)
    workers = [int(path.stem) for path in tmp_path.glob("*.pid")]
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    wait_for(lambda: not any(alive(worker) for worker in workers))


PARENT = """
import os, sys, time
from pathlib import Path
from ncttt.data.files.prefetch import in_processes

def work(folder):
    Path(folder, f"{os.getpid()}.pid").touch()
    time.sleep(1)

if __name__ == "__main__":
    list(in_processes(work, [sys.argv[1]] * 1000, 2))
"""


def test_ctrl_c_while_workers_start_is_answered_by_the_parent_alone(tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(INTERRUPTED)
    run = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path)], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    wait_for(lambda: list(tmp_path.glob("*.starting")), run)
    os.killpg(run.pid, signal.SIGINT)
    assert run.communicate(timeout=60)[1] == "interrupted\n"


INTERRUPTED = """
import os, signal, sys, time
from pathlib import Path
from ncttt.data.files.prefetch import in_processes

def work(folder):
    time.sleep(0.1)

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job would ignore it
    try:
        list(in_processes(work, [sys.argv[1]] * 1000, 2))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
else:
    Path(sys.argv[1], f"{os.getpid()}.starting").touch()
    time.sleep(1)  # stands for the imports of a worker
"""


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_for(condition, run=None, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        assert run is None or run.poll() is None, "the run ended too early"
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 1}, "seed 0 there, 1 asked"),
        ({"severities": [2, 3]}, r"severities \[3\] there, \[2, 3\] asked"),
        ({"constants": "imagenet"}, "constants 'cifar' there, 'imagenet' asked"),
        ({"images": a_set(25)[0] // 2}, "images_sha256"),
        ({"labels": np.zeros(25, int)}, "labels_sha256"),
    ],
)
def test_a_folder_made_with_other_settings_is_refused_and_kept(tmp_path, change, message):
    images, labels = a_set()
    call = {"images": images, "labels": labels, "out": tmp_path, "corruptions": ["fog"], "severities": [3]}
    generate(**call)
    before = contents(tmp_path)
    with pytest.raises(InputError, match=message):
        generate(**call | change)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("name", ["fog.npy", "labels.npy", "snow.npy"])
def test_files_of_unknown_making_are_refused_and_kept(tmp_path, name):
    (tmp_path / name).write_bytes(b"somebody's own")
    with pytest.raises(InputError, match=f"{name} but no corruptions.json"):
        generate(*a_set(), tmp_path, corruptions=["fog"])
    assert contents(tmp_path) == {name: b"somebody's own"}


def test_the_rest_of_a_run_with_another_seed_is_not_mixed_in(tmp_path, small_pieces):
    options = {"corruptions": ["fog"], "severities": [3], "workers": 1}
    killed, fresh = tmp_path / "killed", generate(*a_set(), tmp_path / "fresh", seed=2, **options)

    def stop(done, total):
        if done >= 10:
            waiting(killed / "fog.npy")[0].rename(tmp_path / "half")  # Ctrl-C removes it, a kill would not
            raise KeyboardInterrupt

    with pytest.raises((KeyboardInterrupt, FileNotFoundError)):
        generate(*a_set(), killed, seed=1, progress=stop, **options)
    with pytest.raises(InputError, match="seed 1 there, 2 asked"):
        generate(*a_set(), killed, seed=2, **options)
    for path in killed.iterdir():
        path.unlink()
    (tmp_path / "half").rename(killed / ".fog.npy.left.new")
    generate(*a_set(), killed, seed=2, **options)
    assert contents(killed) == contents(fresh)


def test_an_interrupted_run_leaves_whole_files_only(tmp_path, small_pieces):
    def stop(done, total):
        if done >= 40:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        generate(*a_set(), tmp_path, corruptions=["fog", "snow"], severities=[3], progress=stop, workers=2)
    assert set(contents(tmp_path)) == {"fog.npy", "labels.npy", "corruptions.json"}


def test_a_finished_file_that_was_damaged_is_refused(tmp_path):
    options = {"corruptions": ["fog"], "severities": [3]}
    generate(*a_set(), tmp_path, **options)
    os.truncate(tmp_path / "fog.npy", 1000)
    with pytest.raises(InputError, match=r"fog\.npy is not a uint8 array of shape"):
        generate(*a_set(), tmp_path, **options)


def test_unreadable_metadata_is_refused(tmp_path):
    (tmp_path / "corruptions.json").write_text("{")
    with pytest.raises(InputError, match=r"corruptions\.json cannot be read"):
        generate(*a_set(), tmp_path, corruptions=["fog"])


def test_newer_libraries_matter_only_if_something_is_left_to_do(tmp_path):
    options = {"corruptions": ["fog"], "severities": [3]}
    generate(*a_set(), tmp_path, **options)
    path = tmp_path / "corruptions.json"
    told = json.loads(path.read_text())
    told["libraries"]["numpy"] = "0.1"
    path.write_text(json.dumps(told))
    generate(*a_set(), tmp_path, **options)
    with pytest.raises(InputError, match="libraries"):
        generate(*a_set(), tmp_path, corruptions=["snow"], severities=[3])


def test_a_full_disk_is_told_and_nothing_finished_is_lost(tmp_path, small_pieces, monkeypatch):
    images, labels = a_set()
    whole = generate(images, labels, tmp_path / "whole", corruptions=NAMES, workers=1)
    out, opened = tmp_path / "full", generation.replacing

    @contextmanager
    def until_full(path):
        with opened(path) as file:
            yield file if path.name != "gaussian_noise.npy" else FullDisk(file)

    with monkeypatch.context() as full:
        full.setattr(generation, "replacing", until_full)
        with pytest.raises(InputError, match=r"no room for \d+ MiB .*No space left .*run again to go on"):
            generate(images, labels, out, corruptions=NAMES, workers=1)
    assert (out / "fog.npy").read_bytes() == (whole / "fog.npy").read_bytes()
    assert set(contents(out)) == {"fog.npy", "labels.npy", "corruptions.json"}
    generate(images, labels, out, corruptions=NAMES, workers=1)
    assert contents(out) == contents(whole)


class FullDisk:
    """A file on a disk that has room for a few pieces more."""

    def __init__(self, file):
        self.file = file

    def write(self, content):
        if self.file.tell() > 5 * 10 * 32 * 32 * 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "somewhere")
        return self.file.write(content)


def test_a_real_limit_on_file_size_is_told_like_a_full_disk(tmp_path, small_pieces):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(InputError, match="no room"):
            generate(*a_set(), tmp_path, corruptions=["fog"], severities=[3, 5])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not (tmp_path / "fog.npy").exists()
    out = generate(*a_set(), tmp_path, corruptions=["fog"], severities=[3, 5])
    np.testing.assert_array_equal(np.load(out / "fog.npy")[25:], corrupt(a_set()[0], "fog", 5))


def test_memory_is_bounded_by_the_piece_not_by_the_set(tmp_path, small_pieces):
    def peak(n):
        np.save(tmp_path / f"{n}.npy", a_set(n)[0])
        images = np.load(tmp_path / f"{n}.npy", mmap_mode="r")
        tracemalloc.start()
        generate(images, np.zeros(n, int), tmp_path / str(n), corruptions=["contrast"], severities=[5], workers=1)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    peak(10)  # whatever is cached is cached now
    assert peak(800) < 1.3 * peak(50)
    assert peak(801) < 801 * 32 * 32 * 3


def test_progress_counts_images_and_starts_from_what_was_there(tmp_path, small_pieces):
    seen = []
    options = {"severities": [3], "progress": lambda done, total: seen.append((done, total))}
    generate(*a_set(), tmp_path, corruptions=["fog"], **options)
    assert seen == [(0, 25), (10, 25), (20, 25), (25, 25)]
    seen.clear()
    generate(*a_set(), tmp_path, corruptions=["fog", "contrast"], **options)
    assert seen == [(25, 50), (35, 50), (45, 50), (50, 50)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"corruptions": ["fogg"]}, "no corruption 'fogg'"),
        ({"corruptions": []}, "at least one of each"),
        ({"severities": [3, 3]}, "name one twice"),
        ({"severities": [7]}, "severity 7"),
        ({"labels": np.zeros(3, int)}, r"labels of shape \(3,\) for 25 images"),
        ({"labels": np.zeros(25)}, "labels are float64; expected integers"),
        ({"corruptions": [["fog"]]}, r"no corruption \['fog'\]"),
        ({"workers": 0}, "0 workers; expected at least 1"),
        ({"workers": True}, "True workers"),
        ({"frost": "nowhere"}, "no folder of frost photographs"),
    ],
)
def test_bad_requests_are_named(tmp_path, change, message):
    call = {"images": a_set()[0], "labels": a_set()[1], "out": tmp_path / "out", "corruptions": ["fog"]} | change
    with pytest.raises(InputError, match=message):
        generate(**call)
    assert not (tmp_path / "out").exists()


def test_unreadable_frost_photographs_are_told_before_anything_is_written(tmp_path):
    (tmp_path / "broken.png").write_bytes(b"not a picture")
    with pytest.raises(InputError, match=r"cannot read the frost photograph .*broken\.png"):
        generate(*a_set(), tmp_path / "out", corruptions=["fog", "frost"], frost=tmp_path)
    assert not (tmp_path / "out").exists()
