"""The paper's numbers as they ship: all of them, with what is wrong marked; our names for its methods."""

import csv
from pathlib import Path

import pytest

from ncttt import METHODS, InputError
from ncttt.data.corruptions import CORRUPTIONS
from ncttt.report import paper_accuracy, paper_rows, paper_table
from ncttt.report.paper import TITLES, find, our_name, paper_names
from ncttt.report.paper.rows import NAMES


@pytest.fixture(scope="module")
def shared() -> Path:
    folder = Path(__file__).resolve().parents[2].parent / "shared"
    if not folder.is_dir():
        pytest.skip("no shared folder beside the project")
    return folder


@pytest.mark.shared
def test_the_shipped_numbers_are_the_shared_ones(shared):
    places = ("table", "dataset", "severity", "corruption", "method")
    with (shared / "paper/tables.csv").open(newline="") as file:
        theirs = [
            (*(line[name] for name in places), float(line["accuracy"]), float(line["std"]) if line["std"] else None)
            for line in csv.DictReader(file)
        ]
    ours = [
        (row.table, row.dataset, str(row.severity or ""), row.corruption, row.method, row.accuracy, row.std)
        for row in paper_rows()
    ]
    assert ours == theirs


def test_every_table_is_whole():
    assert {row.table for row in paper_rows()} == set(TITLES)
    for name in set(TITLES) - {"visdac"}:
        rows = paper_rows(name)
        methods = {row.method for row in rows}
        assert {row.corruption for row in rows} == {*CORRUPTIONS, "average"}
        assert len(rows) == 16 * len(methods)


def test_corrected_numbers_have_the_printed_averages():
    for name in set(TITLES) - {"visdac"}:
        rows = paper_rows(name)
        for average in (row for row in rows if row.corruption == "average"):
            parts = [row.value for row in rows if row.method == average.method and row is not average]
            # The parts are rounded to 0.01 and so is their average: it may be wrong by half of that, twice.
            assert sum(parts) / 15 == pytest.approx(average.value, abs=0.0101)
    misprints = [(row.table, row.corruption, row.method) for row in paper_rows() if row.corrected is not None]
    assert misprints == [("cifar10c_level2", "contrast", "NC-TTT")]


def test_bold_errors_are_those_of_the_numbers():
    groups = {}
    for row in paper_rows():
        groups.setdefault((row.table, row.corruption), []).append(row)
    for rows in groups.values():
        best = max(row.value for row in rows)
        for row in rows:
            expected = "" if row.bold == (row.value == best) else "wrong" if row.bold else "missing"
            assert row.bold_error == expected, row
    wrong = {(row.table, row.corruption) for row in paper_rows() if row.bold_error}
    assert wrong == {
        ("cifar100c_level5", "brightness"), ("cifar10c_level3", "frost"),
        ("cifar10c_level4", "brightness"), ("cifar10c_level4", "contrast"),
    }  # fmt: skip


def test_numbers_are_found_by_our_names_and_by_theirs():
    assert paper_accuracy("cifar10", 5, "gaussian_noise", "source") == 21.01
    assert paper_accuracy("cifar10-c", 5, "average", "NC-TTT") == 82.43
    assert paper_accuracy("cifar100", 5, "brightness", "ttt") == 73.25
    assert paper_accuracy("cifar10", 4, "average", "ttt_plus") == 56.91
    assert paper_accuracy("cifar10", 1, "fog", "lame rbf") == 90.05  # the CIFAR tables have one LAME
    assert paper_accuracy("visda-c", 0, "clean", "lame knn") == 42.89
    assert paper_accuracy("visda-c", None, "", "nc_ttt") == 62.71


def test_a_misprint_is_corrected_and_known():
    assert paper_accuracy("cifar10", 2, "contrast", "nc_ttt") == 93.50
    row = find("cifar10", 2, "contrast", "nc_ttt")
    assert row is not None
    assert row.accuracy == 3.50


@pytest.mark.parametrize(
    "asked",
    [
        ("cifar10", 5, "fog", "ttt_flow"),
        ("cifar10", 6, "fog", "nc_ttt"),
        ("cifar10", 5, "clean", "nc_ttt"),
        ("cifar10", 5, "saturate", "nc_ttt"),
        ("cifar100", 4, "fog", "nc_ttt"),
        ("cifar100", 5, "fog", "ttt_plus"),
        ("visda-c", None, "", "lame"),
        ("digits", 5, "fog", "nc_ttt"),
        ("cifar10", 5, "fog", "nc_ttt batch"),
    ],
)
def test_what_the_paper_does_not_have_is_none(asked):
    assert paper_accuracy(*asked) is None


def test_names_go_there_and_back():
    for paper in {row.method for row in paper_rows()}:
        assert paper_names(our_name(paper))[0] == paper_names(paper)[0] == paper
    assert {name.split()[0] for name in NAMES} == set(METHODS) - {"ttt_flow", "ttt_mae"}
    with pytest.raises(InputError, match="no method 'LAME-X'; did you mean 'LAME-R'"):
        our_name("LAME-X")


@pytest.mark.parametrize("ask", [paper_rows, paper_table])
def test_an_unknown_table_is_refused_with_the_nearest(ask):
    with pytest.raises(InputError, match="no table 'cifar10_level5'; did you mean 'cifar10c_level5'"):
        ask("cifar10_level5")
