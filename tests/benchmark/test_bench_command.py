"""`ncttt bench` and `ncttt rows`, as a user meets them."""

import csv
import json

import pytest

from ncttt.benchmark import Store
from ncttt.cli import main
from ncttt.report import compare, comparison_table, render
from ncttt.report.page.report import write_report


@pytest.fixture
def arguments(checkpoint, tmp_path) -> list[str]:
    entries = [{"method": "ptbn", "checkpoint": checkpoint}, {"method": "nc_ttt", "checkpoint": checkpoint}]
    return [
        "bench", "--data", "digits", "--images", "80", "--corruptions", '["contrast", "fog"]', "--batch-sizes", "[40]",
        "--executor", "here", "--store", str(tmp_path / "rows.sqlite"), "--methods", json.dumps(entries),
    ]  # fmt: skip


def test_a_grid_its_table_and_its_rows(arguments, tmp_path, capsys):
    assert main(arguments) == 0
    printed = capsys.readouterr()
    assert [line.split("\t")[0] for line in printed.out.splitlines()] == ["method", "ptbn", "nc_ttt"]
    assert "4 cells, 0 done before, 4 to measure" in printed.err
    assert main([*arguments, "--json"]) == 0
    printed = capsys.readouterr()
    assert len(json.loads(printed.out)) == 4
    assert "0 to measure" in printed.err
    store, out = str(tmp_path / "rows.sqlite"), str(tmp_path / "rows.csv")
    assert main(["rows", "export", store, out]) == 0
    assert main(["rows", "seed", str(tmp_path / "other.sqlite"), out]) == 0
    assert "4 new rows" in capsys.readouterr().out
    assert main(["rows", "show", str(tmp_path / "other.sqlite"), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 4
    assert main(["rows", "show", store]) == 0
    assert "nc_ttt" in capsys.readouterr().out


def test_attribution_is_one_option(arguments, tmp_path, capsys):
    enough = ["--images", "160"]  # four batches, which an interval needs
    assert main([*arguments, *enough, "--attribution", "--csv", str(tmp_path / "shares.csv")]) == 0
    header, line = capsys.readouterr().out.splitlines()
    assert header.split("\t")[-3:] == ["statistics", "steps", "total"]
    shares = [float(part.split(" ")[0]) for part in line.split("\t")[-3:]]
    assert shares[0] + shares[1] == pytest.approx(shares[2], abs=0.011)
    (written,) = csv.DictReader((tmp_path / "shares.csv").open())
    assert [100 * float(written[name]) for name in header.split("\t")[-3:]] == pytest.approx(shares, abs=0.0051)
    assert float(written["steps low"]) <= float(written["steps"]) <= float(written["steps high"])


def test_two_batches_have_no_interval(arguments, tmp_path, capsys):
    assert main([*arguments, "--attribution", "--csv", str(tmp_path / "shares.csv")]) == 0
    shown = capsys.readouterr().out
    assert "100.00" not in shown
    assert shown.splitlines()[1].count("(too few batches)") == 3
    (written,) = csv.DictReader((tmp_path / "shares.csv").open())
    assert (written["steps low"], written["steps high"]) == ("", "")
    assert main([*arguments, "--attribution", "--json"]) == 0
    (share,) = json.loads(capsys.readouterr().out)
    assert (share["steps"]["low"], share["steps"]["high"]) == (None, None)
    with Store(tmp_path / "rows.sqlite") as store:
        compared = comparison_table(compare(store, "nc_ttt", "ptbn"))
    assert "(too few batches)" in render(compared, "markdown")


@pytest.mark.parametrize("order", [("rows", "shares"), ("shares", "rows")])
def test_an_attribution_in_the_same_store_leaves_a_report_as_it_is(arguments, order, tmp_path):
    def columns(*commands: str) -> set[tuple[str, str]]:
        store = str(tmp_path / f"{'-'.join(commands)}.sqlite")
        for command in commands:
            more = ["--attribution"] if command == "shares" else []
            assert main([*arguments, "--methods", json.dumps(source), "--store", store, *more]) == 0
        return {(row["method"], row["settings"]) for row in write_report([store], tmp_path / "report").rows}

    source = {"method": "source", "checkpoint": json.loads(arguments[-1])[0]["checkpoint"]}
    assert columns(*order) == columns("rows")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--corruptions", '["contast"]'], "no corruption 'contast'; did you mean 'contrast'"),
        (["--executor", "proceses"], "no executor 'proceses'; did you mean 'processes'"),
        (["--csv", "shares.csv"], "--csv is for the shares of an attribution"),
        (["--store", "/proc/rows.sqlite"], "cannot use the store"),
        (["--methods", '[{"method": "ptbn", "checkpoint": "x/y"}]'], "no checkpoint in x/y"),
    ],
)
def test_what_the_user_did_wrong_is_one_clear_line(arguments, more, message, capsys):
    assert main([*arguments, *more]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert message in lines[0]


def test_an_unknown_key_of_an_entry_names_the_nearest(arguments, capsys):
    assert main([*arguments, "--methods", '[{"method": "ptbn", "checkpont": "a"}]']) == 2
    assert "did you mean 'checkpoint'" in capsys.readouterr().err


def test_failed_cells_are_told_after_the_others_are_kept(arguments, tmp_path, capsys, monkeypatch):
    from ncttt.methods import PTBN

    def predict(self, model, images):
        raise RuntimeError("out of luck")

    monkeypatch.setattr(PTBN, "predict", predict)
    assert main(arguments) == 2
    assert "2 cells failed, the others are kept" in capsys.readouterr().err
    assert main(["rows", "show", str(tmp_path / "rows.sqlite")]) == 0
    printed = capsys.readouterr().out
    assert "nc_ttt" in printed
    assert "failed: ptbn" in printed


def test_a_store_that_is_not_there_is_told(capsys):
    assert main(["rows", "export", "nowhere.sqlite", "out.csv"]) == 2
    assert "there is no store nowhere.sqlite" in capsys.readouterr().err
