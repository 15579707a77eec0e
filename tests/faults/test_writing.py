"""Outputs: one writer, which follows no planted link, replaces no device, keeps modes and tells two runs apart."""

import csv
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import ncttt.zoo
from ncttt import InputError
from ncttt.base.csv_files import growing_csv
from ncttt.base.files import replace_file, replacing
from ncttt.base.locks import alone_with
from ncttt.cli import main

MODEL = "digits-small-ncttt"


@pytest.fixture(scope="module")
def pictures(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("pictures")
    random = np.random.default_rng(0)
    for number in range(4):
        Image.fromarray(random.integers(0, 256, (32, 32, 3), np.uint8)).save(folder / f"{number}.png")
    return folder


def adapt(pictures: Path, *words: str) -> int:
    return main(["adapt", "--model", MODEL, "--images", str(pictures), "--stop", "none", "--steps", "0", *words])


@pytest.mark.parametrize("name", [".a.txt.new", "a.txt.part", ".a.txt.part", "a.txt.tmp"])
def test_planted_links_are_not_followed(tmp_path, name):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / name).symlink_to(victim)
    replace_file(tmp_path / "a.txt", b"new")
    with growing_csv(tmp_path / "a.txt", ["n"]) as add:
        add([[1]])
    assert victim.read_text() == "precious"
    assert (tmp_path / "a.txt").read_text() == "n\n1\n"


def test_a_planted_lock_is_not_followed(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / ".a.txt.lock").symlink_to(victim)
    with pytest.raises(InputError, match=r"cannot write .*a\.txt"), alone_with(tmp_path / "a.txt"):
        pass
    assert victim.read_text() == "precious"


def test_a_link_is_replaced_and_what_it_leads_to_stays(tmp_path):
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    replace_file(tmp_path / "link", b"new")
    assert (tmp_path / "target").read_text() == "old"
    assert (tmp_path / "link").read_text() == "new"


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755])
@pytest.mark.sound
def test_a_new_file_has_the_mode_of_the_one_that_it_replaces(tmp_path, mode):
    for write in (lambda path: replace_file(path, b"x"), lambda path: _grow(path)):
        path = tmp_path / "a.csv"
        path.write_text("old")
        path.chmod(mode)
        write(path)
        assert path.stat().st_mode & 0o777 == mode


def _grow(path: Path) -> None:
    with growing_csv(path, ["n"]) as add:
        add([[1]])


def test_a_device_is_written_to_and_stays_a_device(pictures, tmp_path):
    before = os.stat(os.devnull)
    assert adapt(pictures, "--out", str(tmp_path / "out.csv"), "--trace", os.devnull) == 0
    assert adapt(pictures, "--out", os.devnull, "--trace", os.devnull) == 0
    with replacing(Path(os.devnull)) as file:
        file.write(b"x")
    assert os.path.samestat(before, os.stat(os.devnull))
    assert len(list(csv.DictReader((tmp_path / "out.csv").open()))) == 4


def test_a_pipe_gets_the_rows(pictures, tmp_path):
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()), daemon=True)
    reader.start()
    assert adapt(pictures, "--out", str(pipe), "--trace", str(tmp_path / "trace.csv")) == 0
    reader.join(10)
    assert len(read[0].splitlines()) == 5
    assert pipe.is_fifo()


@pytest.mark.parametrize("other", ["out.csv", "./out.csv", "inner/../out.csv", "link.csv"])
def test_one_file_for_predictions_and_trace_is_refused(pictures, tmp_path, capsys, monkeypatch, other):
    (tmp_path / "inner").mkdir()
    (tmp_path / "link.csv").symlink_to(tmp_path / "out.csv")
    monkeypatch.chdir(tmp_path)
    assert adapt(pictures, "--out", "out.csv", "--trace", other) == 2
    assert "need a file each" in capsys.readouterr().err
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize("place", ["0.png", "./0.png", "../linked/0.png"])
@pytest.mark.parametrize("option", ["--out", "--trace"])
def test_an_image_is_not_replaced_by_its_prediction(pictures, tmp_path, capsys, option, place):
    folder = tmp_path / "images"
    shutil.copytree(pictures, folder)
    (tmp_path / "linked").symlink_to(folder)
    other = {"--out": "--trace", "--trace": "--out"}[option]
    words = [option, f"{folder}/{place}", other, str(tmp_path / "other.csv"), "--overwrite"]
    assert adapt(folder, *words) == 2
    assert "0.png is one of the images" in capsys.readouterr().err
    assert (folder / "0.png").read_bytes() == (pictures / "0.png").read_bytes()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_named(pictures, tmp_path, capsys):
    assert adapt(pictures, "--out", "/dev/full", "--trace", str(tmp_path / "trace.csv")) == 2
    assert "No space left on device: '/dev/full'" in capsys.readouterr().err


@pytest.mark.parametrize("out", [".", "../linked", "inner/.."])
def test_a_report_does_not_replace_the_rows_that_it_shows(tmp_path, capsys, out):
    folder = tmp_path / "report"
    (folder / "inner").mkdir(parents=True)
    (tmp_path / "linked").symlink_to(folder)
    rows = Path("results/cifar10c_ttt_mae.csv").read_bytes()
    (folder / "tables.csv").write_bytes(rows)
    assert main(["report", str(folder / "tables.csv"), "--out", str(folder / out)]) == 2
    assert "choose another --out" in capsys.readouterr().err
    assert (folder / "tables.csv").read_bytes() == rows


def test_a_training_does_not_replace_a_model(tmp_path, capsys):
    shutil.copytree(ncttt.zoo.__path__[0] + f"/{MODEL}", tmp_path / "model")
    before = {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()}
    assert main(["train", "--config", "digits", "--recipe.epochs", "1", "--out", str(tmp_path / "model")]) == 2
    assert "holds a model, but no training to resume" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()} == before


def test_a_run_that_stops_says_where_its_rows_are(pictures, tmp_path, capsys):
    (tmp_path / "images").mkdir()
    for file in pictures.iterdir():
        (tmp_path / "images" / file.name).write_bytes(file.read_bytes())
    (tmp_path / "images/9.png").write_bytes(b"damaged")
    out = tmp_path / "out.csv"
    assert adapt(tmp_path / "images", "--out", str(out), "--batch-size", "1") == 2
    assert f"the 4 predictions so far are in {out}" in capsys.readouterr().err.replace("\n", "")
    assert len(out.read_text().splitlines()) == 5
    assert sorted(path.name for path in tmp_path.iterdir()) == ["images", "out.csv", "out.trace.csv"]


HOLD = """
import sys
from pathlib import Path
from ncttt.base.locks import alone_with
with alone_with(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def held():
    """Call with an output that another process then writes; returns the process."""
    runs = []

    def hold(output: Path) -> subprocess.Popen:
        run = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(output)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        runs.append(run)
        assert run.stdout.readline() == "held\n"
        return run

    yield hold
    for run in runs:
        run.kill()
        run.communicate()


COMMANDS = {
    "train": ["train", "--config", "digits", "--recipe.epochs", "1", "--out"],
    "bench": ["bench", "--data", "digits", "--images", "8", "--corruptions", "[clean]", "--store"],
    "report": ["report", "results/cifar10c_ttt_mae.csv", "--out"],
    "data corrupt": ["data", "corrupt", "digits", "--corruptions", "fog", "--severity", "1", "--out"],
}
METHODS = ["--methods", f"[{{method: source, checkpoint: {MODEL}}}]", "--executor", "here"]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_second_run_on_an_output_names_the_first(tmp_path, capsys, held, command):
    out = tmp_path / "output"
    first = held(out)
    assert main([*COMMANDS[command], str(out), *(METHODS if command == "bench" else [])]) == 2
    error = capsys.readouterr().err
    assert f"output is being written by process {first.pid}" in error
    assert "choose another output" in error


def test_the_second_run_of_adapt_names_the_first(pictures, tmp_path, capsys, held):
    first = held(tmp_path / "out.csv")
    assert adapt(pictures, "--out", str(tmp_path / "out.csv")) == 2
    assert f"being written by process {first.pid}" in capsys.readouterr().err
    assert not (tmp_path / "out.csv").exists()


def test_a_lock_ends_with_its_process_and_leaves_nothing(tmp_path, held):
    run = held(tmp_path / "out.csv")
    run.kill()
    run.wait()
    for _ in range(2):
        with alone_with(tmp_path / "out.csv"):
            pass
    assert list(tmp_path.iterdir()) == []
