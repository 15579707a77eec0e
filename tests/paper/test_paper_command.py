"""`ncttt paper`: from nothing to a table, killed on the way; the outline; what is missing and what cannot be."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from small_sets import write_cifar, write_cifar10_c, write_pacs

from ncttt.benchmark import read_rows
from ncttt.cli import main


def paper(*words: str, root: Path, out: Path) -> list[str]:
    return ["paper", *words, "--root", str(root), "--out", str(out)]


@pytest.fixture
def pacs(tmp_path) -> Path:
    write_pacs(tmp_path / "root", each=8)  # 56 photographs, a batch of 50 and another
    return tmp_path / "root"


def test_a_table_from_nothing_killed_on_the_way_and_resumed(pacs, tmp_path, capsys):
    words = paper("table3", root=pacs, out=tmp_path / "out")
    home = tmp_path / "out/small/visda"
    first = subprocess.Popen([sys.executable, "-m", "ncttt", *words], stderr=subprocess.PIPE, start_new_session=True)
    deadline = time.monotonic() + 120
    while not (home / "start-seed0/results.json").is_file() and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    assert (home / "start-seed0/results.json").is_file()
    trained = (home / "start-seed0/results.json").stat().st_mtime_ns
    assert not (tmp_path / "out/small/table3.md").exists()
    assert main(words) == 0
    assert (home / "start-seed0/results.json").stat().st_mtime_ns == trained
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].split("\t") == ["method", "ours", "paper", "difference", "ms an image"]
    lines = {line.split("\t")[0]: line.split("\t") for line in shown}
    assert {
        "Source",
        "LAME-L",
        "LAME-K",
        "LAME-R",
        "PTBN",
        "TENT",
        "TTT",
        "ClusT3",
        "TTTFlow",
        "NC-TTT",
    } <= lines.keys()
    assert lines["NC-TTT"][2] == "62.71"
    assert float(lines["NC-TTT"][3]) == pytest.approx(float(lines["NC-TTT"][1]) - 62.71, abs=0.011)
    text = (tmp_path / "out/small/table3.md").read_text()
    assert "pacs stands for the paper's visda-c: compare gains, not accuracies." in text
    assert "Where the gain comes from" in text
    rows = read_rows(tmp_path / "out/small/rows.sqlite")
    keys = {row["key"] for row in rows}
    assert main(words) == 0  # everything is there
    assert {row["key"] for row in read_rows(tmp_path / "out/small/rows.sqlite")} == keys
    assert "0 to measure" in capsys.readouterr().err


def test_a_table_on_the_published_images_says_so(tmp_path, capsys):
    write_cifar(tmp_path / "root", 10)
    write_cifar10_c(tmp_path / "root")
    main(paper("table6", "--images", "2", root=tmp_path / "root", out=tmp_path / "out"))
    assert "the published corrupted images" in capsys.readouterr().err
    text = (tmp_path / "out/small/table6.md").read_text()
    assert "2 images of cifar10-c each, the published corrupted images" in text
    assert {row["constants"] for row in read_rows(tmp_path / "out/small/rows.sqlite")} == {"published"}
    with (tmp_path / "out/small/table6.csv").open(newline="") as file:
        assert len(list(csv.reader(file))) > 15


def test_the_outline_lists_everything_and_does_nothing(tmp_path, capsys):
    main(paper("all", "--dry-run", root=tmp_path / "root", out=tmp_path / "out"))
    shown, told = capsys.readouterr()
    lines = [line.split("\t") for line in shown.splitlines()]
    assert lines[0] == ["item", "shows", "data", "trainings", "cells", "at least"]
    names = [line[0] for line in lines[1:]]
    assert names == [*(f"table{n}" for n in range(1, 8)), *(f"figure{n}" for n in range(2, 9))]
    by_name = dict(zip(names, lines[1:], strict=True))
    assert by_name["table1"][2:4] == ["cifar10 (missing)", "6 ships"]
    assert by_name["table2"][3] == "6 missing"
    assert by_name["figure8"][3] == "17 missing"
    assert "cifar10 is missing: it will be fetched." in told
    assert "pacs is missing: " in told
    assert not (tmp_path / "out").exists()


def test_what_is_large_is_asked_for_and_not_fetched(tmp_path, capsys):
    assert main(paper("table3", "--scale", "paper", root=tmp_path / "root", out=tmp_path / "out")) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "visda-c: fetch it with `ncttt data get visda-c`" in told
    assert "weights/resnet50-imagenet.pth" in told


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["table8"], "the paper has no 'table8'"),
        (["table1", "--images", "0"], "images must be at least 1; found 0"),
        (["table1", "--seeds", "[]"], "seeds must be whole numbers from 0, at least one; found []"),
        (["table1", "--scale", "huge"], "huge"),
        (["table1", "--executor", "cloud"], "no executor 'cloud'"),
    ],
)
def test_what_makes_no_sense_is_one_line(words, told, tmp_path, capsys):
    write_cifar(tmp_path / "root", 10)
    try:
        code = main(paper(*words, root=tmp_path / "root", out=tmp_path / "out"))
    except SystemExit as exit:  # what the parser refuses
        code = exit.code
    assert code == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert told in error


def test_figures_without_data_are_drawn_at_once(tmp_path, capsys):
    main(paper("figure2", "figure5", root=tmp_path / "root", out=tmp_path / "out"))
    files = [Path(line) for line in capsys.readouterr().out.splitlines()]
    assert [file.name for file in files] == ["posterior.svg", "posterior.png", "beta.svg", "beta.png"]
    assert all(file.is_file() for file in files)


@pytest.mark.filterwarnings("ignore:after epoch")  # a handful of images teaches no branch
def test_figure_8_trains_every_pair_and_is_drawn(pacs, tmp_path, capsys):
    assert main(paper("figure8", "--images", "8", root=pacs, out=tmp_path / "out")) == 0
    assert [Path(line).name for line in capsys.readouterr().out.splitlines()] == ["layers.svg", "layers.png"]
    trials = json.loads((tmp_path / "out/small/figure8/trials.json").read_text())
    assert trials["exception"] is None
    assert len(trials["trials"]) == 16
