"""What is committed in results/: tables that say what their rows say, and rows that can be found again."""

import csv
import importlib
import itertools
import json
from collections import Counter
from pathlib import Path

import pytest
import yaml

from ncttt import configs
from ncttt.benchmark import read_rows
from ncttt.benchmark.measure import measure

ROOT = Path(__file__).parents[1]
ROWS = ROOT / "results" / "cifar10c_severity5.csv"


@pytest.fixture
def script(monkeypatch):
    """A script of the study as a module."""
    monkeypatch.syspath_prepend(ROOT / "study")
    monkeypatch.chdir(ROOT)
    return importlib.import_module


def test_the_tables_of_the_findings_are_those_of_the_files_beside_them(script):
    text = (ROOT / "results" / "README.md").read_text()
    assert text.count("<!-- / -->") > 5
    filled, wrong = script("findings").filled, text.replace("0", "1")
    assert filled(text) == text
    assert filled(wrong) != wrong


def test_the_grids_of_the_field_have_the_winners_of_its_search(script):
    """Every method had six trials, and is measured with the best of them."""
    with (ROOT / "results/tuning/field.csv").open(newline="") as file:
        trials = [row for row in csv.DictReader(file) if row["on"] == "tuning"]
    counts = Counter(row["method"] for row in trials)
    assert set(counts.values()) == {6}
    best = {row["method"]: json.loads(row["settings"]) for row in reversed(trials)}
    entries = {
        entry.get("label", entry["method"]): entry["settings"]
        for name in ("field", "field_memo")
        for entry in yaml.safe_load((configs.HOME / f"bench/study/{name}.yaml").read_text())["methods"]
        if "settings" in entry
    }
    entries["ptbn"] = entries.pop("ptbn stream")
    del entries["ptbn prior"], entries["tent published"]  # controls
    four_steps = script("field_search").FOUR_STEPS  # beside which NC-TTT's were searched
    assert {name: [value] for name, value in entries["nc_ttt"].items() if name not in best["nc_ttt"]} == four_steps
    entries["nc_ttt"] = {name: value for name, value in entries["nc_ttt"].items() if [value] != four_steps.get(name)}
    assert entries == best


def test_the_table_of_the_field_is_that_of_its_rows(script):
    found = script("field").table()
    assert (ROOT / "results/tables/field.md").read_text() == found + "\n"
    assert found in (ROOT / "docs/which-method.md").read_text()


def test_the_table_of_survival_is_that_of_its_rows(script):
    assert (ROOT / "results/tables/survival.md").read_text() == script("survival").table() + "\n"


def test_the_tables_of_the_preset_are_those_of_its_rows(script):
    assert (ROOT / "results/tables/preset.md").read_text() == script("preset").tables() + "\n"


def test_the_page_of_promises_has_the_numbers_of_its_rows():
    page = " ".join((ROOT / "docs/promises.md").read_text().split())
    rows = [row for row in read_rows(ROWS) if row["protocol"] == "episodic"]

    def corrupted(method, checkpoint="cifar10-small-ncttt"):
        chosen = [row for row in rows if (row["method"], row["checkpoint"]) == (method, checkpoint)]
        chosen = [row for row in chosen if row["corruption"] != "clean"]
        assert len(chosen) == 15
        return {name: [row[name] for row in chosen] for name in ("accuracy", "mended", "broken", "ece")}

    def mean(name, *which):
        return f"{100 * sum(corrupted(*which)[name]) / 15:.1f}"

    methods = "source", "ptbn", "nc_ttt"
    frozen, statistics, ours = (mean("accuracy", method) for method in methods)
    assert f"The frozen classifier has {frozen} %, batch statistics {statistics} %, NC-TTT {ours} %." in page
    mended, broken = ({m: f"{sum(corrupted(m)[name]):,}" for m in methods} for name in ("mended", "broken"))
    assert (
        f"NC-TTT mended {mended['nc_ttt']} that the frozen classifier had wrong, and broke {broken['nc_ttt']}" in page
    )
    assert f"Batch statistics mended {mended['ptbn']} and broke {broken['ptbn']}." in page
    gaps = [mean("ece", method) for method in methods]
    assert f"is {gaps[0]} points for the frozen classifier on corrupted images, {gaps[1]} with batch" in page
    assert f"and {gaps[2]} with NC-TTT, but {mean('ece', 'tent')} with TENT" in page


@pytest.mark.parametrize("kind", ["digits", "cifar10", "long"])
def test_the_table_of_collapse_is_that_of_its_rows(kind):
    """Survivors are at most two points below no steps, over the stream and at its end."""
    with (ROOT / f"results/collapse_{kind}.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    methods = {row["method"] for row in rows}
    streams = itertools.product(methods, ["long"] if kind == "long" else ["healthy", "by_class", "fast"])
    assert sorted((row["method"], row["stream"]) for row in rows) == sorted(streams)

    def within(row: dict[str, str], column: str, of: str, *keys: str) -> bool:
        return all(round(float(row[f"{of}_{key}"]) - float(row[f"{column}_{key}"]), 4) <= 0.02 for key in keys)

    survived = [within(row, "reset", "unadapted", "accuracy", "end") for row in rows]
    assert [row["survives"] == "True" for row in rows] == survived
    ends = [within(row, "reset", "unadapted", "end") for row in rows]
    batch = [within(row, "reset", "batch", "end") for row in rows if row["batch_end"]]
    plain = [within(row, "plain", "unadapted", "end") for row in rows if row["plain_end"]]
    cells = [len(methods), len(rows), sum(survived), sum(ends)]
    cells += [f"{sum(each)} of {len(each)}" for each in (batch, plain)]
    page = (ROOT / "docs/adapt.md").read_text()
    assert f"(`results/collapse_{kind}.csv`) | {' | '.join(map(str, cells))} |" in page


@pytest.mark.network
def test_the_committed_rows_are_the_cells_of_the_study(script, cifar10_root, monkeypatch):
    monkeypatch.setenv("NCTTT_DATA", str(cifar10_root))
    keys = [row["key"] for path in sorted(ROWS.parent.glob("cifar10c_*.csv")) for row in read_rows(path)]
    planned = [cell.key for cell, _ in script("check_results").committed()]
    assert sorted(planned) == sorted(keys)
    assert len(keys) == 1840


@pytest.mark.network
def test_committed_rows_are_found_again(script, cifar10_root, tmp_path, monkeypatch):
    monkeypatch.setenv("NCTTT_DATA", str(cifar10_root))
    cells = [
        (cell, accuracy)
        for cell, accuracy in script("check_results").committed()
        if cell.label in ("nc_ttt", "ptbn")
        and (cell.protocol, cell.scenarios[0].corruption) == ("online", "shot_noise")
    ]
    assert {cell.label for cell, _ in cells} == {"nc_ttt", "ptbn"}
    for cell, accuracy in cells:
        assert measure(cell, tmp_path).columns["accuracy"] == pytest.approx(accuracy, abs=0.01)
