"""Inputs that fuzzing has found: none of them ends in anything but a clear error."""

from pathlib import Path

import pytest

from fuzz.doors import DOORS, prepare

CORPUS = Path(__file__).parent / "corpus"
FOUND = sorted(path for path in CORPUS.glob("*/*") if path.parent.name in DOORS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("doors")
    prepare(folder)
    return folder


@pytest.mark.parametrize("path", FOUND, ids=lambda path: f"{path.parent.name}-{path.name[:12]}")
def test_what_fuzzing_found_stays_mended(path, folder):
    DOORS[path.parent.name](path.read_bytes(), folder)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.sound
def test_whole_inputs_pass(door, tmp_path):
    """The fuzzer begins with inputs that are read, or it would see nothing but the first check."""
    for content in prepare(tmp_path)[door]:
        DOORS[door](content, tmp_path)
