"""Tuning: on validation alone, every trial what it says, the best first."""

import csv
import json
import re
import shutil
from dataclasses import replace

import pytest

import ncttt
from ncttt import InputError
from ncttt.benchmark import Store, Tuning, run_cells, tune
from ncttt.benchmark.tuning import check_tuning
from ncttt.benchmark.tuning.run import changed, train_once
from ncttt.benchmark.tuning.trials import cells_of_trials, combinations, planned, ranked
from ncttt.report import tuning_table
from ncttt.training.job import Job, read_job


def tuning(checkpoint: str, /, **changes: object) -> Tuning:
    settings = {"data": "digits", "checkpoint": checkpoint, "images": 50, "batch_size": 25, "constants": "imagenet"}
    return Tuning(**(settings | changes))


TIED = {"train": "digits", "checkpoint": None, "trained": {"recipe.seed": [1, 2]}}
BAD = [
    ({"split": "test"}, "chosen on the split 'val'"),
    ({"split": "fit"}, "chosen on the split 'val'"),
    ({"corruptions": ["fog"]}, "'fog' is for testing"),
    ({"corruptions": ["extra", "all"]}, "'all' is for testing"),
    ({"train": "digits"}, "either train, a training's configuration, or checkpoint"),
    ({"checkpoint": None}, "either train, a training's configuration, or checkpoint"),
    ({"trained": {"layer": ["layer1"]}}, "'layer' needs a training"),
    ({"adapted": {"lr": []}}, "lr needs a list of values to try; found []"),
    ({"adapted": {"lr": 0.1}}, "lr needs a list of values to try; found 0.1"),
    ({"adapted": {"lrr": [0.1]}}, "has no setting 'lrr'; did you mean 'lr'"),
    ({"adapted": {"head": ["flat"]}}, "head is settled by the training"),
    ({"adapted": {"lr": ["fast"]}}, "the settings {'lr': 'fast'} of nc_ttt cannot be"),
    ({"adapted": {"stop": ["sorce"]}}, "stop must be 'source'"),
    ({"adapted": {"steps": [1, 1]}}, "step counts must rise"),
    ({"adapted": {"steps": [1]}, "method": "ptbn"}, "ptbn takes no steps"),
    ({"method": "clust3"}, "clust3 needs a model trained for it"),
    ({"confirm": -1}, "confirm must be at least 0"),
    ({"confirm": 1, "confirm_images": 0}, "confirm_images must be at least 1"),
    ({"confirm_images": 10}, "confirm_images is 10 and confirm 0"),
    ({"seed": -1}, "seeds must be at least 0"),
    ({"corruptions": []}, "at least one of its corruptions"),
    ({"corruptions": ["spater"]}, "no corruption 'spater'; did you mean 'spatter'"),
    ({"severity": 0}, "from 1 to 5; found 0"),
    ({"protocol": "offline"}, "no protocol 'offline'"),
    ({"protocol": "mixed"}, "no protocol but an order; write protocol: continual and order: mixed"),
    ({"order": "sorted"}, "no order 'sorted'"),
    ({"sequence": "twice"}, "no sequence of domains 'twice'"),
    ({"sequence": "visits(2)+gradual"}, "the sequence 'visits(2)+gradual' is called 'gradual+visits(2)'"),
    ({"constants": "mnist"}, "no constants 'mnist'"),
    ({"method": "tnet"}, "no method 'tnet'; did you mean 'tent'"),
    ({"confirm": 1, "images": None}, "give images"),
    ({"confirm": 1, "images": 100}, "100 images behind the first 100 of digits val"),
    (
        {"train": "digits", "checkpoint": None, "trained": {"split": ["train"]}},
        "cannot be tuned",
    ),
    ({"random": 0}, "random must be at least 1"),
    ({"split": "test", "exception": "as the paper", "confirm": 1}, "trials of an exception choose nothing"),
    (
        {**TIED, "tied": {"recipe.lr": "2 * recipe.branch_lr"}},
        "a setting that is tried, as in 2 * layer; found '2 * recipe",
    ),
    ({**TIED, "tied": {"recipe.lr": "two * recipe.seed"}}, "a tied setting is a number * a setting that is tried"),
    ({**TIED, "tied": {"recipe.seed": "2 * recipe.seed"}}, "recipe.seed is tied to another setting and has values"),
]


@pytest.mark.parametrize(("change", "message"), BAD)
def test_what_is_no_honest_tuning_is_refused(checkpoint, change, message):
    job = read_job("digits") if "train" in change else None
    with pytest.raises(InputError, match=re.escape(message)):
        check_tuning(tuning(checkpoint, **change), job)


def test_a_grid_tries_all_and_a_draw_some_of_them(checkpoint):
    whole = tuning(checkpoint, adapted={"lr": [0.1, 0.01], "moves": ["layer1", "norm", "encoder"]})
    assert len(combinations(whole)) == 6
    drawn = tuning(checkpoint, adapted=whole.adapted, random=4)
    assert len(combinations(drawn)) == 4
    assert combinations(drawn) == combinations(drawn)
    assert all(pair in combinations(whole) for pair in combinations(drawn))


def test_one_setting_of_a_training_is_changed_at_a_time():
    asked = Tuning(
        data="digits", train="a.yaml", one_by_one=True, trained={"layer": ["a", "b"], "c": [1]}, adapted={"lr": [1, 2]}
    )
    assert [trained for trained, _ in combinations(asked)[::2]] == [{}, {"layer": "a"}, {"layer": "b"}, {"c": 1}]
    assert [adapted["lr"] for _, adapted in combinations(asked)] == [1, 2] * 4


def test_a_tied_setting_follows_the_one_it_is_tied_to():
    asked = Tuning(data="digits", train="a.yaml", trained={"b": [0.01, 0.05], "c": [1]}, tied={"d": "2 * b"})
    assert [trained for trained, _ in combinations(asked)] == [
        {"b": 0.01, "c": 1, "d": 0.02},
        {"b": 0.05, "c": 1, "d": 0.1},
    ]


def test_an_exception_is_named_wherever_its_trials_are_shown(checkpoint, tmp_path, capsys):
    asked = tuning(checkpoint, split="test", exception="a figure of the paper", corruptions=["spatter"], images=25)
    check_tuning(asked, None)
    result = tune(asked, tmp_path / "out", executor="here", progress=False)
    assert result.trials
    assert tuning_table(result.trials, exception=asked.exception).notes == ("Exception: a figure of the paper.",)


@pytest.mark.parametrize("protocol", ["episodic", "online"])
def test_trials_are_ranked_by_what_separate_adapters_would_find(checkpoint, store, protocol):
    from ncttt.data import load
    from ncttt.data.batching import shuffled
    from ncttt.data.corruptions import EXTRA, corrupt

    asked = tuning(checkpoint, adapted={"lr": [0.01, 0.05], "steps": [1, 3]}, protocol=protocol)
    chosen = planned(asked, lambda settings: checkpoint)
    cells = cells_of_trials(chosen)
    assert len(cells) == 4 * (1 + (2 if protocol == "episodic" else 4))  # step counts share a cell where they can
    run_cells(cells, store)
    results = ranked(chosen, store)
    assert [result.accuracy for result in results] == sorted((r.accuracy for r in results), reverse=True)
    best = results[0].trial.settings

    data = load("digits", "val")
    places = shuffled(len(data), 0, 0)[:50]
    places.sort()
    order, accuracies = shuffled(50, 0, 0), []
    for name in EXTRA:
        images = corrupt(data.images, name, 5, constants="imagenet")[places][order]
        labels = data.labels[places][order]
        adapter = ncttt.Adapter(ncttt.load(checkpoint), lr=best["lr"], steps=best["steps"], protocol=protocol)
        import torch

        pixels = torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255
        right = [adapter(pixels[s : s + 25]).argmax(1).numpy() == labels[s : s + 25] for s in (0, 25)]
        accuracies.append((right[0].sum() + right[1].sum()) / 50)
    assert results[0].accuracy == pytest.approx(sum(accuracies) / 4)


def test_fresh_images_are_others(checkpoint):
    asked = tuning(checkpoint, adapted={"lr": [0.1]})
    first, fresh = (planned(asked, lambda settings: checkpoint, fresh=again)[0] for again in (False, True))
    drawn = [trial.cells[0].scenarios[0].draw.read().places for trial in (first, fresh)]
    assert set(drawn[0]).isdisjoint(drawn[1])
    assert len(drawn[0]) == len(drawn[1]) == 50
    with pytest.raises(InputError, match="give images"):
        planned(tuning(checkpoint, images=None), lambda settings: checkpoint, fresh=True)


def test_models_of_a_tuning_are_trained_once_and_never_see_the_test_set(tmp_path, monkeypatch):
    from ncttt.training import launch

    job = changed(
        read_job("digits"),
        {"recipe.epochs": 1, "network_settings.width": 2, "layer": "layer2", "method_settings.hidden": 8},
    )
    assert (job.layer, job.recipe.epochs, job.method_settings["hidden"], job.method_settings["moves"]) == (
        "layer2", 1, 8, "layer1",
    )  # fmt: skip
    loaded = []
    monkeypatch.setattr(
        launch, "load", lambda name, split, **rest: loaded.append(split) or ncttt.data.load(name, split)
    )
    with pytest.warns(UserWarning, match="learned nothing"):
        folder = train_once(job, tmp_path, observers=[])
    assert loaded == ["fit", "val"]
    assert train_once(job, tmp_path) == folder
    assert loaded == ["fit", "val"]
    assert ncttt.load(folder).layer == "layer2"


def test_settings_that_no_training_has_are_told(tmp_path):
    job = read_job("digits")
    with pytest.raises(InputError, match="a training has no setting 'layr'; did you mean 'layer'"):
        changed(job, {"layr": "layer1"})
    with pytest.raises(InputError, match="a training has no setting 'recipe'"):
        changed(job, {"recipe": {"epochs": 1}})
    with pytest.raises(InputError, match="epoch"):
        changed(job, {"recipe.epoch": 1})
    for text in ("a: [", "[1]", "data: digits\nout: a\nlayr: b", "data: digits\nout: a\nrecipe: {epochs: many}"):
        (tmp_path / "bad.yaml").write_text(text)
        with pytest.raises(InputError, match=r"bad\.yaml is no configuration of a training"):
            read_job(tmp_path / "bad.yaml")
    (tmp_path / "good.yaml").write_text("data: digits\nout: a\nrecipe: {lr: 1e-3}")
    assert read_job(tmp_path / "good.yaml").recipe.lr == 1e-3


def test_a_model_that_has_seen_the_validation_images_is_refused(checkpoint, tmp_path):
    job = replace(read_job("digits"), split="train")
    asked = tuning(checkpoint, checkpoint=None, train="a.yaml", trained={"layer": ["layer1"]})
    with pytest.raises(InputError, match="learns from the split 'train', which holds images of 'val'"):
        check_tuning(asked, job)
    shutil.copytree(checkpoint, tmp_path / "run" / "last")
    (tmp_path / "run" / "config.json").write_text(json.dumps({"about": {"split": "train"}}))
    with pytest.raises(InputError, match="learns from the split 'train'"):
        check_tuning(tuning(str(tmp_path / "run" / "last")), None)
    started = replace(job, split="fit", start=str(tmp_path / "run" / "last"))
    with pytest.raises(InputError, match="learns from the split 'train'"):
        check_tuning(asked, started)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"batch_size": 51}, "batches of 51 images are asked for, and there are 50 images of digits"),
        (
            {"method": "rotta", "adapted": {"capacity": [50], "every": [25, 64]}, "protocol": "online"},
            "after each 64 images",
        ),
        ({"adapted": {"norm": ["window(51)"]}, "protocol": "online"}, "which the 50 images until"),
    ],
)
def test_streams_that_are_too_short_are_refused_before_anything_is_trained(checkpoint, change, message):
    with pytest.raises(InputError, match=message):
        check_tuning(tuning(checkpoint, **change), None)


def test_any_method_can_be_tuned(checkpoint, store):
    asked = tuning(checkpoint, method="tent", adapted={"lr": [1e-3, 1e-1]})
    check_tuning(asked, None)
    chosen = planned(asked, lambda settings: checkpoint)
    assert {cell.method["name"] for trial in chosen for cell in trial.cells} == {"tent"}
    run_cells(cells_of_trials(chosen), store)
    assert len({result.accuracy for result in ranked(chosen, store)}) == 2


def test_tuning_is_a_command(checkpoint, tmp_path, capsys):
    from ncttt.cli import main

    arguments = ["tune", "--data", "digits", "--checkpoint", checkpoint, "--images", "40", "--batch-size", "20"]
    more = [
        "--adapted",
        json.dumps({"lr": [0.01, 0.05]}),
        "--confirm",
        "1",
        "--executor",
        "here",
        "--out",
        str(tmp_path),
    ]
    assert main([*arguments, *more, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert {trial["settings"]["lr"] for trial in printed["trials"]} == {0.01, 0.05}
    assert printed["confirmed"][0]["settings"] == printed["trials"][0]["settings"]
    assert main([*arguments, *more, "--csv", str(tmp_path / "trials.csv")]) == 0
    assert "on fresh images" in capsys.readouterr().out
    lines = list(csv.DictReader((tmp_path / "trials.csv").open()))
    assert [line["on"] for line in lines] == ["tuning", "tuning", "fresh"]
    for line, trial in zip(lines, [*printed["trials"], *printed["confirmed"]], strict=True):
        assert (float(line["lr"]), float(line["accuracy"])) == (trial["settings"]["lr"], trial["accuracy"])
        assert float(line["gain"]) == trial["gain"]["mean"]
    assert main([*arguments, "--split", "test"]) == 2
    assert "chosen on the split 'val'" in capsys.readouterr().err


def test_tuning_is_a_function(checkpoint, tmp_path, capsys):
    asked = tuning(checkpoint, adapted={"lr": [0.01, 0.05]}, confirm=1, protocol="continual", order="mixed")
    result = tune(asked, tmp_path, executor="here", progress=False)
    assert capsys.readouterr().err == ""
    assert {one.trial.settings["lr"] for one in result.trials} == {0.01, 0.05}
    assert [one.trial.settings for one in result.confirmed] == [result.trials[0].trial.settings]
    assert result.failures == []
    (cell,) = result.trials[0].trial.cells
    assert (cell.protocol, cell.order, len(cell.scenarios)) == ("continual", "mixed", 4)


def test_the_best_can_be_confirmed_on_more_images_than_the_trials_had(checkpoint, tmp_path):
    asked = tuning(checkpoint, adapted={"lr": [0.01, 0.05]}, images=40, confirm=1, confirm_images=64)
    result = tune(asked, tmp_path, executor="here", progress=False)
    tried, fresh = (one.trial.cells[0].scenarios[0].draw for one in (result.trials[0], result.confirmed[0]))
    assert (len(tried.read().labels), len(fresh.read().labels)) == (40, 64)


def test_settings_can_be_chosen_on_domains_that_come_again(checkpoint, tmp_path):
    asked = tuning(checkpoint, adapted={"lr": [0.01]}, protocol="continual", sequence="visits(2)")
    (result,) = tune(asked, tmp_path, executor="here", progress=False).trials
    (cell,), (still,) = result.trial.cells, result.trial.baseline
    assert len(cell.scenarios) == 8
    assert cell.corruptions == [scenario.corruption for scenario in cell.scenarios[4:]]
    with Store(tmp_path / "trials.sqlite") as store:
        rows = store.by_key([cell.key, still.key])
    assert {row["order"] for row in rows.values()} == {"random+visits(2)"}
    assert result.accuracy == pytest.approx(rows[cell.key]["accuracy"])
    assert result.gain.mean == pytest.approx(rows[cell.key]["accuracy"] - rows[still.key]["accuracy"])


def test_models_are_trained_by_the_function(tmp_path):
    (tmp_path / "train.yaml").write_text(
        "data: digits\nout: a\nnetwork_settings: {width: 2}\nrecipe: {epochs: 1}\nmethod_settings: {hidden: 8}"
    )
    asked = Tuning(data="digits", train=str(tmp_path / "train.yaml"), trained={"layer": ["layer1", "layer2"]},
                   images=40, batch_size=20, corruptions=["spatter"])  # fmt: skip
    with pytest.warns(UserWarning, match="learned nothing"):
        result = tune(asked, tmp_path / "out", executor="here", progress=False)
    assert {ncttt.load(one.trial.checkpoint).layer for one in result.trials} == {"layer1", "layer2"}


def test_settings_that_came_later_leave_finished_trainings_where_they_are():
    from ncttt.benchmark.tuning.run import _facts

    plain = _facts(Job(data="digits"))
    assert "resize" not in plain
    assert "fast" not in plain["recipe"]
    other = _facts(Job(data="digits", resize="crop", recipe=ncttt.Recipe(fast=True)))
    assert (other["resize"], other["recipe"]["fast"]) == ("crop", True)
