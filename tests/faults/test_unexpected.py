"""An error that nobody foresaw is one line that says so, not a bare traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ncttt.cli import main


@pytest.fixture
def broken(monkeypatch):
    def fail(*args, **kwargs):
        raise RuntimeError("two\nlines \x1b[31m")

    monkeypatch.setattr("ncttt.zoo.shipped.trained_models", fail)


def test_a_bug_is_named_and_how_to_report_it(broken, capsys):
    assert main(["info"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(r"ncttt: RuntimeError: two\nlines \x1b[31m; this is a bug in ncttt")
    assert "--debug" in line


@pytest.mark.sound
def test_debug_shows_the_trace(broken):
    with pytest.raises(RuntimeError, match="two"):
        main(["info", "--debug"])


@pytest.mark.parametrize("stream", [1, 2])
@pytest.mark.parametrize(("words", "code"), [(["info"], 0), (["nosuch"], 2), (["data", "list", "--json"], 0)])
def test_a_closed_stream_is_no_bug(words, code, stream):
    run = [sys.executable, "-m", "ncttt", *words]
    ended = subprocess.run(run, preexec_fn=lambda: os.close(stream), capture_output=True, timeout=60)
    assert ended.returncode == code
    assert b"bug" not in ended.stderr + ended.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_behind_the_output_is_one_line():
    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "ncttt", "info"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60
        )
    assert ended.returncode == 2
    assert len(ended.stderr.splitlines()) == 1
