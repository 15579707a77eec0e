"""Settings that TTT++ and ClusT3 got after models and rows had been made: those keep their meaning and their keys."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from test_keys import cell_of

import ncttt
from ncttt.benchmark import read_rows
from ncttt.methods.settings import as_first_recorded, as_recorded, settings_of
from ncttt.testing.cases import attached
from ncttt.zoo import HOME

ROWS = Path(__file__).parents[2] / "results" / "cifar10c_severity5.csv"
# Method, the setting that came later, its value in older files, its value today.
ADDED = [("ttt_plus", "base_temperature", None, 0.07), ("clust3", "reduction", "mean", "sum")]
MODELS = {"ttt_plus": "cifar10-small-ttt-plus", "clust3": "cifar10-small-clust3"}
KINDS = {"ttt_plus": ncttt.TTTPlus, "clust3": ncttt.ClusT3}


@pytest.mark.parametrize(("method", "setting", "before", "now"), ADDED)
def test_a_model_of_the_zoo_keeps_the_meaning_that_it_was_trained_with(method, setting, before, now):
    described = json.loads((HOME / MODELS[method] / "model.json").read_text())["method"]
    assert setting not in described
    assert getattr(ncttt.load(MODELS[method]).method, setting) == before
    assert getattr(KINDS[method](), setting) == now


@pytest.mark.parametrize(("method", "setting", "before", "now"), ADDED)
def test_a_checkpoint_remembers_the_setting_and_one_without_it_has_the_old_value(
    method, setting, before, now, tmp_path
):
    model = attached("resnet", KINDS[method]())
    ncttt.save(model, tmp_path)
    assert ncttt.load(tmp_path, model.classifier).method == model.method
    file = tmp_path / "model.json"
    described = json.loads(file.read_text())
    assert described["method"].pop(setting) == now
    file.write_text(json.dumps(described))
    assert ncttt.load(tmp_path, model.classifier).method == replace(model.method, **{setting: before})


@pytest.mark.parametrize(("method", "setting", "before", "now"), ADDED)
def test_the_key_of_a_committed_row_is_that_of_the_old_value(method, setting, before, now):
    rows = [row for row in read_rows(ROWS) if row["method"] == method]
    assert len(rows) >= 15
    for row in rows:
        cell = cell_of(row)
        assert setting not in cell.method
        assert replace(cell, method=cell.method | {setting: before}).key == row["key"]
        assert replace(cell, method=cell.method | {setting: now}).key != row["key"]


@pytest.mark.parametrize(("method", "setting", "before", "now"), ADDED)
def test_settings_as_recorded_first_and_as_they_are_read(method, setting, before, now):
    old = settings_of(KINDS[method](**{setting: before}))
    assert setting not in as_first_recorded(old)
    assert as_recorded(as_first_recorded(old)) == old
    new = settings_of(KINDS[method]())
    later = ("crop", "gather", "mirror_mean")  # of every method, and here as they were before
    assert as_first_recorded(new) == {name: value for name, value in new.items() if name not in later}
    assert as_recorded(as_first_recorded(new)) == new == as_recorded(new)
