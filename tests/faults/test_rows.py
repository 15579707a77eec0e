"""Rows of a benchmark: values are checked at the door, and cells that a spreadsheet would run are none."""

import csv
import io
import json
from pathlib import Path

import pytest

from ncttt import InputError
from ncttt.base.csv_files import csv_text
from ncttt.benchmark import Store, read_rows
from ncttt.benchmark.rows import COLUMNS, write_csv
from ncttt.cli import main

ROW = {
    "key": "a",
    "data": "digits",
    "split": "test",
    "corruption": "fog",
    "severity": 5,
    "method": "source",
    "checkpoint": "model",
    "images": 10,
    "seed": 0,
    "accuracy": 0.5,
    "ece": 0.1,
    "images_per_second": 3.5,
    "accuracy_at": '{"0": 0.5}',
    "settings": "{}",
}
BAD = [
    *[(name, value) for name in ("accuracy", "ece", "class_accuracy") for value in ("1.01", "-0.1", "nan", "inf", "x")],
    *[(name, value) for name in ("images", "seed", "fallbacks", "broken") for value in ("-1", "1.5", "nan", "9" * 30)],
    *[(name, value) for name in ("images_per_second", "peak_memory_mib", "nll") for value in ("inf", "nan", "1e999")],
    *[(name, value) for name in ("accuracy_at", "settings") for value in ("{", "[]", "3", "[" * 10_000)],
    ("key", ""),
    ("accuracy", ""),
    ("images", "9" * 5000),
]


def write(folder: Path, **changes: str) -> Path:
    path = folder / "rows.csv"
    values = {name: ROW.get(name) for name in COLUMNS} | changes
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([values.keys(), values.values()])
    return path


@pytest.mark.parametrize(("name", "value"), BAD, ids=lambda value: f"{value:.20}")
def test_a_value_that_no_measurement_gives_is_named(tmp_path, name, value, capsys):
    path = write(tmp_path, **{name: value})
    with pytest.raises(InputError, match=rf"rows\.csv, line 2.*{name}"):
        read_rows(path)
    assert main(["report", str(path), "--out", str(tmp_path / "page")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert not (tmp_path / "page").exists()


@pytest.mark.parametrize(("name", "value"), [("accuracy", 7.0), ("accuracy", "x"), ("images", -1), ("settings", "[")])
def test_a_store_is_checked_as_well(tmp_path, name, value):
    with Store(tmp_path / "rows.sqlite") as store:
        store.write(ROW | {name: value})
    with pytest.raises(InputError, match=rf"rows\.sqlite, a, {name}"):
        read_rows(tmp_path / "rows.sqlite")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_the_mark_of_a_spreadsheet_is_read_over(tmp_path, encoding):
    path = write(tmp_path)
    path.write_text(path.read_text(), encoding=encoding)
    assert read_rows(path)[0]["accuracy"] == 0.5


FORMULAS = ["=1+2", "+1-x", "-cat", "@SUM(1)", "\tx", "\rx", "=cmd|' /C calc'!A0", "'=x", "''-x"]


@pytest.mark.parametrize("text", FORMULAS)
def test_a_cell_that_a_spreadsheet_would_run_is_neutralised_and_read_back(tmp_path, text):
    text_of_file = csv_text(["file", "shift"], [[text, -0.5]])
    _, (cell, number) = csv.reader(io.StringIO(text_of_file, newline=""))
    assert cell == f"'{text}"
    assert number == "-0.5"
    row = ROW | {"method": text, "checkpoint": "'tis", "settings": json.dumps({"a": text})}
    write_csv([{name: row.get(name) for name in COLUMNS}], tmp_path / "rows.csv")
    assert [(r["method"], r["checkpoint"], r["settings"]) for r in read_rows(tmp_path / "rows.csv")] == [
        (text, "'tis", row["settings"])
    ]
