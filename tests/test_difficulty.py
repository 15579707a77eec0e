"""How faithful the generated CIFAR-10-C is: the committed errors, the pages that quote them, and their benchmark."""

import csv
import importlib
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import save_file

import ncttt
from ncttt.data.corruptions import CORRUPTIONS, EXTRA

ROOT = Path(__file__).parents[1]
MEAN = "mean of 15"


@pytest.fixture
def benchmark(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module("difficulty")


def rows_in(path: Path) -> dict[str, dict[str, dict[str, str]]]:
    """Rows by network and corruption."""
    found: dict[str, dict[str, dict[str, str]]] = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["network"], {})[row["corruption"]] = row
    return found


@pytest.fixture
def committed():
    return rows_in(ROOT / "results/corruption_difficulty.csv")


def test_the_committed_errors_are_of_all_test_images_and_their_means_are_right(committed):
    assert set(committed) == {"resnet20", "resnet26gn"}
    for rows in committed.values():
        assert list(rows) == ["clean", *CORRUPTIONS, *EXTRA, MEAN]
        assert {row["images"] for row in rows.values()} == {"10000"}
        assert "with changes" not in rows[MEAN]["commit"]
        mean = np.mean([float(rows[name]["error"]) for name in CORRUPTIONS])
        assert float(rows[MEAN]["error"]) == pytest.approx(mean, abs=0.006)
    assert float(committed["resnet20"]["clean"]["error"]) == pytest.approx(8.27, abs=0.01)
    assert float(committed["resnet26gn"]["clean"]["error"]) == pytest.approx(9.17, abs=0.01)


def test_the_published_errors_stand_next_to_those_of_their_network_alone(committed, benchmark):
    assert not any(row["published"] or row["difference"] for row in committed["resnet20"].values())
    rows = committed["resnet26gn"]
    assert {name: float(row["published"]) for name, row in rows.items() if name in CORRUPTIONS} == benchmark.PUBLISHED
    assert float(rows[MEAN]["published"]) == 32.7  # as published, too
    for row in rows.values():
        if row["published"]:
            difference = float(row["error"]) - float(row["published"])
            assert float(row["difference"]) == pytest.approx(difference, abs=0.011)


def test_the_pages_quote_the_committed_errors(committed, benchmark):
    rows = committed["resnet26gn"]
    page, findings = (
        " ".join((ROOT / name).read_text().split()) for name in ("docs/corruptions.md", "results/README.md")
    )
    for name in (*CORRUPTIONS, MEAN):
        published, error, difference = (float(rows[name][column]) for column in ("published", "error", "difference"))
        assert f"| {name} | {published:.1f} | {error:.1f} | {difference:+.1f} |" in page
    compared = list(benchmark.compare({name: float(rows[name]["error"]) for name in CORRUPTIONS}).items())
    (furthest, difference), (_, correlation) = compared[2:]
    assert furthest == "largest difference (frost)"
    assert f"largest difference is {difference:.1f} points at frost" in page
    assert f"the errors correlate by {correlation:.3f}" in page
    assert f"has {rows[MEAN]['error']} % error on average, published are 32.70 %" in findings
    assert (
        f"off by more than {abs(difference):.1f} points (frost), and the correlation is {correlation:.3f}" in findings
    )
    assert f"ResNet-20 ({committed['resnet20'][MEAN]['error']} % error on average)" in findings


def test_a_comparison_by_hand(benchmark):
    compared = benchmark.compare(
        {name: error + (3 if name == "fog" else 0) for name, error in benchmark.PUBLISHED.items()}
    )
    assert compared["mean"] == pytest.approx(compared["published mean"] + 3 / 15)
    assert compared["largest difference (fog)"] == pytest.approx(3)
    assert compared["correlation"] < 1


@pytest.mark.network
def test_the_benchmark_writes_a_row_for_each_network_and_corruption(benchmark, cifar10_root, tmp_path, monkeypatch):
    save_file(ncttt.models.resnet26gn().state_dict(), tmp_path / "weights.safetensors")
    command = ["--resnet26gn", tmp_path / "weights.safetensors", "--out", tmp_path / "out.csv", "--images", 10]
    monkeypatch.setattr(sys, "argv", ["difficulty.py", *map(str, command), "--root", str(cifar10_root)])
    benchmark.main()
    rows = rows_in(tmp_path / "out.csv")["resnet26gn"]
    assert list(rows) == ["clean", *CORRUPTIONS, *EXTRA, MEAN]
    assert {row["images"] for row in rows.values()} == {"10"}


def test_the_benchmark_needs_weights(benchmark, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["difficulty.py", "--out", "never.csv"])
    with pytest.raises(SystemExit) as ended:
        benchmark.main()
    assert ended.value.code == 2
    assert "--resnet20 or --resnet26gn" in capsys.readouterr().err
