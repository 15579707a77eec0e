"""What is committed in results/: tables that say what their rows say, and rows that can be found again."""

import importlib.util
from pathlib import Path

import pytest

from ncttt.benchmark.measure import measure
from ncttt.benchmark.table import read_csv
from ncttt.data.corruptions import CORRUPTIONS

ROOT = Path(__file__).parents[2]
ROWS = ROOT / "results" / "cifar10c_severity5.csv"


def script(name: str):
    spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tables_of_the_findings_are_those_of_the_files_beside_them():
    text = (ROOT / "results" / "README.md").read_text()
    assert text.count("<!-- / -->") > 5
    assert script("findings").filled(text) == text
    assert script("findings").filled(text.replace("0", "1")) != text.replace("0", "1")


def test_every_method_was_measured_on_all_corruptions_and_enough_images():
    rows = list(read_csv(ROWS))
    measured = {(row["method"], row["checkpoint"], row["protocol"]) for row in rows}
    findings = script("findings")
    for name, own in findings.OWN.items():
        wanted = ("episodic", "online") if name in findings.LEARN else ("episodic",)
        assert {(*own, protocol) for protocol in wanted} <= measured
    for way in measured:
        own = [row for row in rows if (row["method"], row["checkpoint"], row["protocol"]) == way]
        assert {row["corruption"] for row in own} == {"clean", *CORRUPTIONS}
        assert all(row["images"] >= 2000 and "dirty" not in row["commit"] for row in own)


@pytest.mark.network
def test_a_committed_row_is_found_again(cifar10_root, tmp_path, monkeypatch):
    monkeypatch.setenv("NCTTT_DATA", str(cifar10_root))
    cells = [
        (cell, accuracy)
        for cell, accuracy in script("check_results").committed()
        if (cell.label, cell.protocol, cell.scenes[0].corruption) == ("nc_ttt", "episodic", "shot_noise")
    ]
    assert cells
    for cell, accuracy in cells:
        assert measure(cell, tmp_path).columns["accuracy"] == pytest.approx(accuracy, abs=0.01)
