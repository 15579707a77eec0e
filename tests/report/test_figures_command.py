"""`ncttt figures`, as a user meets it."""

import json
import sys

import pytest
from figure_data import rows_of_a_benchmark, trials
from figure_pages import EVERY

from ncttt.base.errors import InputError
from ncttt.benchmark import Store
from ncttt.benchmark.store import read_rows
from ncttt.cli import main
from ncttt.report import draw_figures
from ncttt.report.figures import FIGURES, gallery


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> str:
    """A store with rows made by hand, and its CSV beside it."""
    path = tmp_path_factory.mktemp("rows") / "rows.sqlite"
    with Store(path) as rows:
        for row in rows_of_a_benchmark(["clean", "fog", "snow"]):
            rows.write(row | {"ece": 0.1, "images_per_second": 1.0})
        rows.export(path.with_suffix(".csv"))
    return str(path)


def test_the_gallery_is_what_can_be_drawn_and_the_help_lists_it(capsys):
    assert list(FIGURES) == list(EVERY)
    with pytest.raises(SystemExit) as done:
        main(["figures", "--help"])
    assert done.value.code == 0
    help_text = "".join(capsys.readouterr().out.split())
    assert main(["figures", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == list(FIGURES)
    assert all("".join(line.split()) in help_text for line in lines)


def test_figures_of_rows_from_a_store_or_its_csv_are_the_same_files(store, tmp_path, capsys):
    names = ["iterations", "attribution", "shift"]
    assert main(["figures", *names, "--rows", store, "--out", str(tmp_path / "one")]) == 0
    printed = capsys.readouterr().out.split()
    assert printed == [str(tmp_path / "one" / f"{n}.{kind}") for n in names for kind in ("svg", "png")]
    assert main(["figures", *names, "--rows", store.replace(".sqlite", ".csv"), "--out", str(tmp_path / "two")]) == 0
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()


def test_figures_of_a_model_need_nothing_and_are_the_same_twice(tmp_path):
    options = ["--images", "30", "--steps", "1"]
    assert main(["figures", "tsne", "reliability", "corruptions", *options, "--out", str(tmp_path / "one")]) == 0
    assert main(["figures", "tsne", "reliability", *options, "--out", str(tmp_path / "two")]) == 0
    assert len(list((tmp_path / "one").iterdir())) == 6
    for path in (tmp_path / "two").iterdir():
        assert path.read_bytes() == (tmp_path / "one" / path.name).read_bytes()


@pytest.mark.parametrize("name", ["trials", "searched"])  # the second is what older files say
def test_layers_come_from_a_file_of_trials(tmp_path, name):
    file = tmp_path / "trials.json"
    file.write_text(json.dumps({name: trials(), "confirmed": []}))
    assert main(["figures", "layers", "--trials", str(file), "--out", str(tmp_path)]) == 0
    assert (tmp_path / "layers.png").is_file()


def test_rows_can_be_chosen_by_their_columns(store, tmp_path, capsys):
    arguments = ["figures", "iterations", "--rows", store, "--out", str(tmp_path)]
    assert main([*arguments, "--where.corruption", "fog"]) == 0
    capsys.readouterr()
    assert main([*arguments, "--where.severity", "2"]) == 2
    assert "none of 30 rows has severity=2" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["iteratons"], "no figure 'iteratons'; did you mean 'iterations'"),
        (["beta", "fild"], "no figure 'fild'; did you mean 'field'"),
        (["attribution"], "the figure attribution needs rows: --rows FILE, the store of `ncttt bench"),
        (["layers"], "the figure layers needs trials: --trials FILE, from `ncttt tune"),
        (["shift", "--rows", "nowhere.sqlite"], "there is no file nowhere.sqlite"),
        (["shift", "--rows", __file__], "is neither a store of rows nor a .csv"),
        (["layers", "--trials", __file__], "holds no trials; write it by `ncttt tune"),
        (["tsne", "--model", "digits-small-nctt"], "did you mean 'digits-small-ncttt'"),
        (["tsne", "--images", "100000"], "asked for 100000 images of"),
        (["reliability", "--method", "tnt"], "no method 'tnt'; did you mean"),
    ],
)
def test_what_the_user_did_wrong_is_one_clear_line(arguments, message, tmp_path, capsys):
    assert main(["figures", *arguments, "--out", str(tmp_path / "out")]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert message in lines[0]
    assert not (tmp_path / "out").exists()


def test_all_leaves_out_what_it_has_nothing_for(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(gallery, "chosen", lambda names: ["method", "shift"])
    assert main(["figures", "all", "--out", str(tmp_path)]) == 0
    found = capsys.readouterr()
    assert found.out.split() == [str(tmp_path / "method.svg"), str(tmp_path / "method.png")]
    assert found.err.startswith("ncttt: left out shift: the figure shift needs rows")


TOY = """
from ncttt.report.figures.shared.style import new_figure, styled

NEEDS = "rows"


@styled
def draw_toy(request):
    figure = new_figure(height=2)
    figure.subplots().plot([row["accuracy"] for row in request.chosen_rows])
    return figure
"""


def test_a_figure_from_outside_is_drawn_by_its_address(store, tmp_path, capsys, monkeypatch):
    (tmp_path / "toy_figures.py").write_text(TOY)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    asked = ["figures", "toy_figures:draw_toy", "--out", "drawn"]
    assert main([*asked, "--rows", store]) == 0
    assert capsys.readouterr().out.split() == ["drawn/toy_figures.draw_toy.svg", "drawn/toy_figures.draw_toy.png"]
    assert (tmp_path / "drawn" / "toy_figures.draw_toy.png").stat().st_size > 1000
    assert main(asked) == 2
    assert "the figure toy_figures:draw_toy needs rows: --rows FILE" in capsys.readouterr().err
    assert main(["figures", "toy_figures:NEEDS"]) == 2
    assert "'toy_figures:NEEDS' is no figure: expected a function" in capsys.readouterr().err
    assert main(["figures", "toy_figures:draw_tye"]) == 2
    assert "cannot load 'toy_figures:draw_tye'" in capsys.readouterr().err


def test_the_library_draws_from_fields_and_says_what_it_left_out(store, tmp_path, monkeypatch):
    (drawing,) = draw_figures(["attribution"], tmp_path, rows=store)
    assert drawing.files == (tmp_path / "attribution.svg", tmp_path / "attribution.png")
    monkeypatch.setattr(gallery, "chosen", lambda names: ["layers"])
    (drawing,) = draw_figures(["all"], tmp_path, rows=store)
    assert (drawing.files, drawing.left_out[:30]) == ((), "the figure layers needs trials")


def test_a_file_that_is_not_there_is_an_error_even_where_no_figure_needs_it(tmp_path, capsys):
    assert main(["figures", "all", "--rows", "nowhere.sqlite", "--out", str(tmp_path)]) == 2
    assert "there is no file nowhere.sqlite" in capsys.readouterr().err


def test_rows_are_read_from_what_is_a_store(tmp_path, store):
    assert read_rows(store) == read_rows(store.replace(".sqlite", ".csv"))
    foreign = tmp_path / "foreign.csv"
    foreign.write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="no export of a store"):
        read_rows(foreign)
