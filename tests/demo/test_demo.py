"""The demonstration: every method has a line, gains are told apart, and a page is written."""

import json

import pytest

import ncttt
from ncttt.benchmark.drifting import DOMAINS, summaries
from ncttt.cli import main
from ncttt.demo import cifar10_grid, demo_table, digits_grid, run_demo, trainings
from ncttt.demo.setups import SETUPS
from ncttt.demo.table import explained, shown_name
from ncttt.demo.trainings import METHODS, method_job, start_job
from ncttt.report.table import MISSING, cell_text
from report.report_rows import row

MODELS = {method: f"models/{method}" for method in METHODS}
BATCH = {"settings": json.dumps({"name": "nc_ttt", "norm": "batch"}), "checkpoint": "own"}


def test_every_method_is_shown_and_trained_methods_have_models_of_their_own():
    entries = digits_grid(MODELS, images=100).methods
    # TTT-MAE needs a transformer, and the demonstration has a convolutional network.
    assert {entry.method for entry in entries} == set(ncttt.METHODS) - {"ttt_mae"}
    own = {entry.method: entry.checkpoint for entry in entries if ncttt.METHODS[entry.method].has_branch}
    assert own == {method: MODELS[method] for method in METHODS if method != "source"}


def test_the_demo_on_cifar10_uses_models_that_ship():
    entries = cifar10_grid(100).methods
    checkpoints = {str(entry.checkpoint) for entry in entries if isinstance(entry.checkpoint, str)}
    assert {"cifar10-small-source", "cifar10-small-ncttt"} <= checkpoints <= set(ncttt.zoo.names())
    assert {"source", "ptbn", "tent", "lame", "nc_ttt"} <= {entry.method for entry in entries}


def test_all_models_have_the_same_budget(tmp_path):
    start = start_job(epochs=12, seed=0)
    recipes = [method_job(method, start, tmp_path).recipe for method in METHODS]
    assert {(recipe.epochs, recipe.lr, recipe.seed) for recipe in recipes} == {(3, 0.02, 0)}


def test_a_gain_is_that_over_the_methods_own_model():
    rows = [
        row("source", "clean", 0.99),
        row("source", "fog", 0.30),
        row("ptbn", "clean", 0.98),
        row("ptbn", "fog", 0.60),
        row("source", "fog", 0.40, checkpoint="own"),
        row("ptbn", "fog", 0.65, checkpoint="own"),
        row("nc_ttt", "clean", 0.97, **BATCH),
        row("nc_ttt", "fog", 0.68, **BATCH),
    ]
    table = demo_table(rows, plain="small", times={"source": 1.0, "nc_ttt": 12.3})
    lines = {line.name: dict(zip(table.columns, map(cell_text, line.cells), strict=True)) for line in table.lines}
    assert list(lines) == ["frozen", "PTBN", "NC-TTT"]
    assert (lines["frozen"]["mean"], lines["frozen"]["gain"]) == ("30.0", MISSING)
    assert (lines["PTBN"]["gain"], lines["PTBN"]["by statistics"], lines["PTBN"]["by steps"]) == (
        "+30.0",
        "+30.0",
        MISSING,
    )
    assert (lines["NC-TTT"]["gain"], lines["NC-TTT"]["by statistics"], lines["NC-TTT"]["by steps"]) == (
        "+28.0",
        "+25.0",
        "+3.0",
    )
    assert [lines[name]["time"] for name in lines] == ["1.0 x", MISSING, "12 x"]


def test_the_whole_demonstration(tmp_path, capsys, monkeypatch):
    """One epoch and two models are enough to see that all is trained, measured, shown and found again."""
    monkeypatch.setattr(trainings, "METHODS", {name: METHODS[name] for name in ("source", "nc_ttt")})
    asked = ["demo", "--epochs", "1", "--images", "20", "--out", str(tmp_path)]
    assert main([*asked, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["method"] for row in rows} == {"source", "ptbn", "tent", "lame", "nc_ttt"}
    assert (tmp_path / "index.html").is_file()
    assert main(asked) == 0  # nothing is trained or measured again
    shown = capsys.readouterr()
    assert "0 to measure" in shown.err
    assert str(tmp_path / "index.html") in shown.err
    assert "by statistics" in shown.out
    assert shown.err.index("Contrast, 20 images: frozen model") < shown.err.index("Training a plain network")
    assert "Its steps add" in " ".join(shown.out.split())


def test_the_shipped_model_shows_what_batch_statistics_do(tmp_path, capsys):
    assert main(["demo", "--pretrained", "--images", "100", "--out", str(tmp_path), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    contrast = {row["method"]: row["accuracy"] for row in rows if row["corruption"] == "contrast"}
    assert contrast["ptbn"] > contrast["source"] + 0.2
    demo = run_demo(pretrained=True, images=100, out=str(tmp_path))  # the library does all that the command does
    assert demo.rows == rows
    assert {line.name for line in demo.table.lines} == {shown_name(method) for method in contrast}
    assert [summary.corruption for summary in summaries(demo.records)] == ["clean", *SETUPS["digits"].shifts, "clean"]
    assert summaries(demo.records)[3].adapted > summaries(demo.records)[3].frozen + 0.2
    assert "steps add" in demo.verdict
    assert demo.page == tmp_path / "index.html"


def test_cifar10_that_is_not_there_is_told(tmp_path, capsys):
    assert main(["demo", "--data", "cifar10", "--root", str(tmp_path), "--out", str(tmp_path)]) == 2
    assert "ncttt data get cifar10" in capsys.readouterr().err


@pytest.mark.parametrize("asked", [["--epochs", "0"], ["--images", "0"]])
def test_nothing_to_do_is_an_error(asked, tmp_path, capsys):
    assert main(["demo", "--out", str(tmp_path), *asked]) == 2
    assert asked[0].strip("-") in capsys.readouterr().err


def test_an_interrupted_demonstration_says_how_to_go_on(tmp_path, capsys, monkeypatch):
    def interrupt(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("ncttt.demo.stream.follow", interrupt)
    assert main(["demo", "--out", str(tmp_path)]) == 130
    assert "The same command goes on from here" in capsys.readouterr().err


def test_every_column_is_explained_in_a_line_that_no_terminal_wraps():
    lines = explained([row("source", "clean", 0.99)]).splitlines()
    columns = demo_table([row("source", "clean", 0.99), row("source", "fog", 0.3)], plain="small").columns
    named = {line[:14].strip() for line in lines}
    assert named == {"method", "Clean, ..."} | (set(columns) - {"Clean", "Fog"})
    assert max(map(len, lines)) <= 80


def test_cifar10_drifts_as_the_figure_of_a_drifting_stream_does():
    assert SETUPS["cifar10"].shifts == DOMAINS[1:-1]
