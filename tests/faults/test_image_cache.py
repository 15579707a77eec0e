"""The cache of a grid's images: a file that is not what was written is made again."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import small_grid
from ncttt.benchmark import run_grid
from ncttt.benchmark.shared_arrays import _opened, shared, whole

ARRAY = np.arange(3000, dtype=np.int64).reshape(30, 100)


def made(path: Path, calls: list[int], array: np.ndarray = ARRAY) -> np.ndarray:
    _opened.cache_clear()  # as in another process
    return shared(path, lambda: calls.append(1) or whole(array))


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def lengthen(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"x")


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-100] ^= 1
    path.write_bytes(content)


DAMAGES = {
    "cut": cut,
    "longer": lengthen,
    "one bit": flip,
    "empty": lambda path: path.write_bytes(b""),
    "short": lambda path: path.write_bytes(b"x" * 10),
    "text": lambda path: path.write_text("hello" * 100),
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "an array without a digest": lambda path: np.save(path, ARRAY + 1),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_made_again(tmp_path, damage):
    path, calls = tmp_path / "a.npy", []
    assert np.array_equal(made(path, calls), ARRAY)
    assert np.array_equal(made(path, calls), ARRAY)
    assert len(calls) == 1
    DAMAGES[damage](path)
    assert np.array_equal(made(path, calls), ARRAY)
    assert len(calls) == 2


def test_a_file_under_another_name_is_made_again(tmp_path):
    made(tmp_path / "fog.npy", [], ARRAY + 1)
    shutil.copy(tmp_path / "fog.npy", tmp_path / "snow.npy")
    assert np.array_equal(made(tmp_path / "snow.npy", []), ARRAY)


def test_a_grid_goes_on_with_a_damaged_cache(checkpoint, store, tmp_path):
    grid = small_grid.grid(checkpoint)
    before = run_grid(grid, store, executor="here", cache=tmp_path / "cache")
    files = sorted((tmp_path / "cache").glob("*.npy"))
    other = files[0].read_bytes()
    for path in files[1:]:
        path.write_bytes(other)
    cut(files[0])
    _opened.cache_clear()
    after = run_grid(grid, store, executor="here", cache=tmp_path / "cache", force=True)
    assert after.failures == []
    assert [row["accuracy"] for row in after.rows] == [row["accuracy"] for row in before.rows]
