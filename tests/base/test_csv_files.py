"""CSV files: read back as they were written, and kept as far as they came."""

import csv
import math
import resource

import pytest

from ncttt import InputError
from ncttt.base.csv_files import csv_text, growing_csv, write_csv


def test_values_are_read_back_as_they_were_written(tmp_path):
    path = tmp_path / "a.csv"
    row = ["a, b", 'say "x"', "two\nlines", 0.1 + 0.2, None, 3, True, "ä"]
    write_csv(path, list("abcdefgh"), [row])
    with path.open(newline="", encoding="utf-8") as file:
        header, values = csv.reader(file)
    assert header == list("abcdefgh")
    assert values == ["a, b", 'say "x"', "two\nlines", repr(0.1 + 0.2), "", "3", "True", "ä"]
    assert float(values[3]) == 0.1 + 0.2
    assert b"\r" not in path.read_bytes()


def test_numbers_that_are_none_are_kept_as_such():
    assert csv_text(["x"], [[math.nan], [math.inf], [1e-300]]) == "x\nnan\ninf\n1e-300\n"


def test_rows_are_on_the_disk_as_soon_as_they_are_added(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("old")
    with growing_csv(path, ["n", "text"]) as add:
        add([[1, "a"], [2, "b\nc"]])
        assert add.path.read_text() == 'n,text\n1,a\n2,"b\nc"\n'
        assert path.read_text() == "old"
        add(iter([[3, "d"]]))
        add([])
    assert path.read_text() == 'n,text\n1,a\n2,"b\nc"\n3,d\n'
    assert [file.name for file in tmp_path.iterdir()] == ["a.csv"]


def test_what_was_written_has_its_name_however_it_ends(tmp_path):
    def interrupted() -> None:
        with growing_csv(tmp_path / "a.csv", ["n"]) as add:
            add([[1]])
            add([[1 / zero] for zero in (1, 0)])

    with pytest.raises(ZeroDivisionError):
        interrupted()
    assert (tmp_path / "a.csv").read_text() == "n\n1\n"


def test_a_full_disk_keeps_what_was_written_until_then(tmp_path):
    """Files cannot grow beyond a limit: what a full disk does."""

    def filled() -> None:
        with growing_csv(tmp_path / "a.csv", ["n"]) as add:
            add([[1]])
            add([["x" * 1000]])

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            filled()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (tmp_path / "a.csv").read_text().startswith("n\n1\n")


def test_a_run_without_rows_leaves_the_file_from_before(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("old")
    with growing_csv(path, ["n"]):
        pass
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["a.csv"]


def test_where_no_file_can_be_is_told_before_anything_runs(tmp_path):
    ran = []
    for path, why in (
        (tmp_path, "it is a folder"),
        (tmp_path / "no/a.csv", "no is no folder"),
    ):
        with pytest.raises(InputError, match=f"cannot write .*: .*{why}"), growing_csv(path, ["n"]):
            ran.append(path)
    assert ran == []
