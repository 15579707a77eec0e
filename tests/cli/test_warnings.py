"""Warnings on a terminal are a line each, whatever the command."""

import subprocess
import sys

import numpy as np
from PIL import Image

from ncttt.cli import main


def test_a_warning_is_one_plain_line(tmp_path):
    for number, name in enumerate(("cat", "dog")):
        (tmp_path / "photos" / name).mkdir(parents=True)
        Image.fromarray(np.full((32, 32, 3), number, np.uint8)).save(tmp_path / "photos" / name / "good.png")
        (tmp_path / "photos" / name / "torn.png").write_bytes(b"no image")
    words = ["data", "corrupt", str(tmp_path / "photos"), "--out", str(tmp_path / "out"), "--split", "all"]
    few = ["--corruptions", "contrast", "--severity", "1", "--workers", "1", "--image-size", "32", "--skip-bad"]
    command = [sys.executable, "-m", "ncttt", *words, *few]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    warned = [line for line in done.stderr.splitlines() if "left out" in line]
    assert len(warned) == 1
    assert warned[0].startswith("ncttt: left out 2 of 4 images: ")
    assert "UserWarning" not in done.stderr
    assert ".py" not in done.stderr


def test_the_warnings_of_the_caller_are_as_before():
    import warnings

    shown, filters = warnings.showwarning, list(warnings.filters)
    assert main(["data", "list"]) == 0
    assert (warnings.showwarning, warnings.filters) == (shown, filters)
