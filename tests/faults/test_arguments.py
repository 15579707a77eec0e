"""Arguments that make no sense: one line, exit code 2, nothing written, found before any work is done."""

import os
from pathlib import Path

import pytest

from ncttt.cli import main

DIGITS = "9" * 5000
TOO_LARGE = 2**64
ADAPT = "adapt --model digits-small-ncttt --images images --out out.csv"
TRAIN = "train --config digits --out run"
BENCH = "bench --config digits --store store.sqlite"
CASES = [
    *[f"{ADAPT} --lr {value}" for value in ("-1", "nan", "inf", "x")],
    *[f"{ADAPT} --steps {value}" for value in ("-1", "1.5", "x", DIGITS)],
    *[f"{ADAPT} --seed {value}" for value in ("-1", "1.5", DIGITS)],
    *[f"{ADAPT} --threads {value}" for value in ("0", "-3", "100000", DIGITS)],
    *[f"{ADAPT} --batch-size {value}" for value in ("0", "-5", "x", DIGITS)],
    *[f"{ADAPT} --device {value}" for value in ("cuda:99", "meta", "tpu", "''", "cpu:7", "cuda:-1", "xpu")],
    *[f"{ADAPT} --norm {value}" for value in ("blend(2)", "blend(nan)", "running(0,1)", "x", "''")],
    *[f"{ADAPT} --protocol {value}" for value in ("x", "''", "os:system", "nosuch:THING")],
    *[f"{ADAPT} --method {value}" for value in ("x", "''", "os:system", "nosuch:Thing")],
    *[f"{ADAPT} --settings {value}" for value in ("x", "{lr: -1}", "{nosuch: 1}", "[1]", "{a: {b: {}}}")],
    *[f"{ADAPT} --resize {value}" for value in ("x", "crop(0)", f"crop({DIGITS})")],
    *[f"{ADAPT} --stop {value}" for value in ("x", "''")],
    *[
        f"adapt --model {value} --images images --out out.csv"
        for value in ("nosuch", "''", ".", "/", "hf://", "a" * 5000)
    ],
    *[
        f"adapt --model digits-small-ncttt --images {value} --out out.csv"
        for value in ("nosuch", "''", "empty", "a" * 5000)
    ],
    *[
        f"adapt --model digits-small-ncttt --images images --out {value}"
        for value in ("''", ".", "nosuch/a.csv", "empty")
    ],
    f"{ADAPT} --trace out.csv",
    f"{ADAPT} --trace empty",
    *[f"{TRAIN} --recipe.lr {value}" for value in ("-1", "nan", "inf")],
    *[f"{TRAIN} --recipe.epochs {value}" for value in ("-1", "1.5", DIGITS)],
    *[f"{TRAIN} --recipe.batch-size {value}" for value in ("0", "-5")],
    *[f"{TRAIN} --recipe.seed {value}" for value in ("-1", DIGITS)],
    *[f"{TRAIN} --device {value}" for value in ("cuda:99", "tpu", "meta")],
    *[f"{TRAIN} --threads {value}" for value in ("0", "-1")],
    *[f"train --config digits --out {value}" for value in ("''", "file.txt", "file.txt/run")],
    *[
        f"train --config {value} --out run"
        for value in ("latin.yaml", "bomb.yaml", "deep.yaml", "huge.yaml", "binary.yaml")
    ],
    *[
        f"train --config {value} --out run"
        for value in ("nosuch", "''", "empty", "list.yaml", "null.yaml", "number.yaml")
    ],
    *[f"{BENCH} --batch-sizes {value}" for value in ("0", "-1", "x")],
    *[f"{BENCH} --seeds {value}" for value in ("-1", "x", DIGITS)],
    *[f"{BENCH} --severities {value}" for value in ("0", "6", "x")],
    *[f"{BENCH} --threads {value}" for value in ("0", "-1")],
    *[f"{BENCH} --workers {value}" for value in ("0", "-1")],
    *[f"{BENCH} --device {value}" for value in ("cuda:99", "tpu", "meta")],
    *[f"{BENCH} --images {value}" for value in ("0", "-1")],
    *[f"bench --config {value} --store store.sqlite" for value in ("bomb.yaml", "latin.yaml", "nosuch")],
    *[f"bench --config digits --store {value}" for value in ("empty", "''")],
    *[f"report {value}" for value in ("nosuch.csv", "''", "empty", "file.txt", "binary.yaml")],
    *[f"rows export {value} out.csv" for value in ("nosuch.sqlite", "file.txt", "empty")],
    *[f"rows show {value}" for value in ("nosuch.sqlite", "file.txt", "empty")],
    *[f"rows seed {value} new.sqlite" for value in ("nosuch.csv", "file.txt", "binary.yaml")],
    *[f"figures {value}" for value in ("nosuch", "''")],
    *[f"figures tsne --severity {value}" for value in ("0", "9")],
    *[f"figures tsne --images {value}" for value in ("0", "-1", DIGITS)],
    *[f"paper {value}" for value in ("table99", "''")],
    *[f"paper table1 --images {value}" for value in ("0", "-1")],
    *[f"demo --seed {value}" for value in ("-1", DIGITS)],
    *[f"demo --data {value}" for value in ("nosuch", "''")],
    *[f"data get {value}" for value in ("nosuch", "''", "../x")],
    *[f"data check {value}" for value in ("nosuch", "''")],
    *[f"data corrupt digits --out c --severity {value}" for value in ("0", "6", "x")],
    *[f"data corrupt nosuch --out {value}" for value in ("c", "''")],
    *[f"data corrupt digits --out c --seed {value}" for value in ("-1", DIGITS)],
    "data sheet digits --out empty",
    *[f"tune --config digits --seed {value}" for value in ("-1", DIGITS)],
    *[f"pull {value} here" for value in ("nosuch", "a/b/c", "''", "hf://../..")],
    *[f"push {value} you/name" for value in ("nosuch", "empty", "''")],
    *[f"{ADAPT} --device {value}" for value in ("privateuseone", "xla", "CPU", f"cuda:{DIGITS}")],
    f"{TRAIN} --recipe.seed {TOO_LARGE}",
    *[f"{TRAIN} --recipe.workers {value}" for value in ("-1", DIGITS)],
    f"{BENCH} --seeds {TOO_LARGE}",
    *[f"{BENCH} --{option} file.txt" for option in ("root", "checkpoint", "executor")],
    f"bench --config digits --executor here --workers {DIGITS} --store store.sqlite",
    f"demo --seed {TOO_LARGE}",
    *[f"paper table1 --workers {value}" for value in ("0", "-3", DIGITS)],
    *[f"paper table1 --device {value}" for value in ("tpu", "privateuseone", "meta", "cuda:99")],
    *[f"paper table1 --seeds {value}" for value in ("-1", TOO_LARGE)],
    *[f"paper table1 --{option} nosuch" for option in ("executor", "scale")],
    "data get cifar10 --root file.txt",
    "data list --root file.txt",
    "data corrupt digits --corruptions fog --severity 1 --out /",
    "nosuch",
    "data nosuch",
    "completion tcshell",
]


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch) -> Path:
    """A folder with odd files in it, in which the commands run."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "images").mkdir()
    (tmp_path / "file.txt").write_text("hello")
    (tmp_path / "latin.yaml").write_bytes("data: caf\xe9\n".encode("latin-1"))
    (tmp_path / "binary.yaml").write_bytes(bytes(range(256)))
    bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n"
    bomb += "".join(
        f"{new}: &{new} [{', '.join(['*' + old] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
    )
    (tmp_path / "bomb.yaml").write_text(bomb)
    (tmp_path / "deep.yaml").write_text("[" * 100_000)
    (tmp_path / "list.yaml").write_text("[1, 2]\n")
    (tmp_path / "null.yaml").write_text('data: "a\\0b"\n')
    (tmp_path / "number.yaml").write_text(f"recipe: {{epochs: {DIGITS}}}\n")
    with (tmp_path / "huge.yaml").open("w") as file:
        file.truncate(200 << 20)
    from PIL import Image

    for number in range(3):
        Image.new("RGB", (32, 32)).save(tmp_path / f"images/{number}.png")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NCTTT_DATA", str(tmp_path / "root"))
    return tmp_path


@pytest.mark.parametrize("words", CASES, ids=lambda words: f"{words:.70}")
def test_bad_arguments_are_one_line_and_code_2(words, place, capsys):
    before = sorted(os.listdir(place))
    try:
        code = main(["" if word == "''" else word for word in words.split(" ")])
    except SystemExit as end:
        code = end.code
    said = capsys.readouterr()
    lines = said.err.splitlines()
    assert code == 2, said
    assert len(lines) == 1, lines
    assert len(lines[0]) < 1100
    assert "this is a bug" not in lines[0]
    assert sorted(name for name in os.listdir(place) if name != "root") == before


@pytest.mark.parametrize("words", [["adapt", "--model", "a\0b"], ["report", "a\0b"], ["data", "get", "\0"]])
def test_a_null_byte_is_refused(words, capsys):
    with pytest.raises(SystemExit) as end:
        raise SystemExit(main(words))
    assert end.value.code == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
