"""The same rows, however they were measured: straight, killed again and again, by two processes, on Ray."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest
import yaml

import small_grid
from ncttt.benchmark import Store
from ncttt.benchmark.rows import Row

CELLS = 72


@pytest.fixture(scope="module")
def config(checkpoint, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("config") / "grid.yaml"
    grid = {
        "data": "digits",
        "images": 120,
        "corruptions": ["gaussian_noise", "contrast"],
        "constants": "imagenet",
        "protocols": ["episodic", "online"],
        "batch_sizes": [40],
        "seeds": [0, 1, 2, 3, 4, 5],
        "methods": [
            {"method": "source", "checkpoint": checkpoint},
            {"method": "ptbn", "checkpoint": checkpoint},
            {"method": "nc_ttt", "checkpoint": checkpoint, "steps": [0, 2, 10]},
        ],
    }
    path.write_text(yaml.safe_dump(grid))
    return path


@pytest.fixture(scope="module")
def straight(config, tmp_path_factory) -> list[Row]:
    store = tmp_path_factory.mktemp("straight") / "rows.sqlite"
    assert bench(config, store, "here").wait() == 0
    rows = read(store)
    assert len(rows) == CELLS
    assert len({row["accuracy"] for row in rows}) > 5
    return rows


def bench(config: Path, store: Path, executor: str, *more: str) -> subprocess.Popen:
    command = [sys.executable, "-m", "ncttt", "bench", "--config", str(config), "--store", str(store)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen([*command, "--executor", executor, *more], env=environment, start_new_session=True)


def read(path: Path) -> list[Row]:
    with Store(path) as store:
        return small_grid.facts(store.rows())


def count(path: Path) -> int:
    if not path.exists():
        return 0
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10)) as base:
        try:
            return base.execute("SELECT count(*) FROM rows").fetchone()[0]
        except sqlite3.OperationalError:  # the table is not there yet
            return 0


def wait_for(condition: Callable[[], object], process: subprocess.Popen) -> None:
    end = time.monotonic() + 240
    try:
        while not condition():
            assert process.poll() is None, "the run ended before its time"
            assert time.monotonic() < end, "nothing happened"
            time.sleep(0.01)
    except AssertionError:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        raise


def test_killed_ten_times_at_random_moments(config, straight, tmp_path):
    store, seed = tmp_path / "rows.sqlite", random.randrange(10**6)
    chance = random.Random(seed)
    print(f"seed of the moments: {seed}")  # shown by pytest when the test fails
    for _ in range(10):
        before = count(store)
        process = bench(config, store, "here")
        wait_for(lambda before=before: count(store) > before, process)
        time.sleep(chance.uniform(0, 0.1))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert 10 <= count(store) < CELLS
    assert bench(config, store, "here").wait() == 0
    assert read(store) == straight


def test_two_processes_one_of_which_is_killed(config, straight, tmp_path):
    store = tmp_path / "rows.sqlite"
    process = bench(config, store, "processes", "--workers", "2")
    wait_for(lambda: count(store) >= 3, process)
    workers = [pid for pid in children(process.pid) if b"spawn_main" in command_line(pid)]
    assert len(workers) == 2
    os.kill(workers[0], signal.SIGKILL)
    assert process.wait() == 0
    assert read(store) == straight


def test_a_local_ray_cluster_one_of_whose_workers_is_killed(config, straight, tmp_path):
    store = tmp_path / "rows.sqlite"
    process = bench(config, store, "ray")
    wait_for(lambda: count(store) >= 3, process)
    killed: list[int] = []

    def kill_one() -> bool:
        busy = [pid for pid in descendants(process.pid) if command_line(pid).startswith(b"ray::attempt")]
        for pid in busy[:1]:
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)
        return bool(busy)

    wait_for(kill_one, process)
    assert process.wait() == 0
    assert read(store) == straight
    assert killed


def children(parent: int) -> list[int]:
    return [pid for pid in everyone() if f"\nPPid:\t{parent}\n" in text(pid, "status")]


def descendants(parent: int) -> list[int]:
    own = children(parent)
    return own + [pid for child in own for pid in descendants(child)]


def everyone() -> list[int]:
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]


def command_line(pid: int) -> bytes:
    return text(pid, "cmdline").encode()


def text(pid: int, what: str) -> str:
    try:
        return Path(f"/proc/{pid}/{what}").read_text()
    except OSError:  # it has ended
        return ""
