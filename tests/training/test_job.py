"""A job: read from a file as the command reads it, run by one call."""

import json
import subprocess
import sys
from dataclasses import fields

import pytest
import tiny
import torch

import ncttt
from ncttt import InputError, Recipe
from ncttt.cli.actions import options_of
from ncttt.cli.catalogue import find
from ncttt.cli.parser import parser_of
from ncttt.training import Job, read_job, run_job
from ncttt.training.job import RUNNING

TINY = Job(
    data="digits",
    network_settings={"width": 4},
    method="source",
    recipe=Recipe(epochs=2, batch_size=64, lr=0.02),
)


def test_the_options_of_the_command_are_those_of_a_job_and_of_running_it():
    parser = parser_of(find(["train"])[0])
    options = {action.dest.split(".")[0] for action in options_of(parser)}
    assert options == {field.name for field in fields(Job)} | set(RUNNING)


def test_a_job_and_its_file_need_no_torch():
    code = "import sys; from ncttt.training import Job, Recipe, read_job; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_what_the_command_prints_as_a_configuration_is_read_again(tmp_path, capsys):
    words = ["--data", "digits", "--out", "x", "--recipe.milestones", "[3, 5]", "--layer", "[layer1, layer2]"]
    with pytest.raises(SystemExit, match="0"):
        ncttt.cli.main(["train", *words, "--network_settings.width", "4", "--mean", "[0.5]", "--print-config"])
    printed = capsys.readouterr().out
    (tmp_path / "a.yaml").write_text(printed)
    expected = Job(
        data="digits",
        network_settings={"width": 4},
        layer=["layer1", "layer2"],
        mean=[0.5],
        recipe=Recipe(milestones=(3, 5)),
    )
    assert "method_settings: null" in printed
    assert read_job(tmp_path / "a.yaml") == expected


def test_a_file_that_says_little_is_enough(tmp_path):
    (tmp_path / "a.yaml").write_text("data: digits\nthreads: many\nrecipe: {lr: 1e-3}\n")
    assert read_job(tmp_path / "a.yaml") == Job(data="digits", recipe=Recipe(lr=1e-3))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("out: x\n", "data"),
        ("data: digits\nlayr: b\n", "'layr'"),
        ("data: digits\nrecipe: {epohcs: 3}\n", "epohcs"),
        ("data: digits\nrecipe: {epochs: many}\n", "many"),
        ("data: digits\nnetwork_settings: [1]\n", "network_settings"),
        ("data: [digits\n", "config"),
        ("- 1\n", "config"),
    ],
)
def test_a_wrong_file_is_named_with_what_is_wrong(tmp_path, text, message):
    (tmp_path / "bad.yaml").write_text(text)
    with pytest.raises(InputError, match=r"bad\.yaml is no configuration of a training: ") as error:
        read_job(tmp_path / "bad.yaml")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_settings_that_make_no_sense_are_told_by_their_own_words(tmp_path):
    (tmp_path / "a.yaml").write_text("data: digits\nrecipe: {epochs: 0}\n")
    with pytest.raises(InputError, match="epochs must be positive; found 0"):
        read_job(tmp_path / "a.yaml")
    (tmp_path / "b.yaml").write_text("data: digits\nwhiten: true\nstart: digits-small-ncttt\n")
    with pytest.raises(InputError, match="whiten is for a network that begins with random weights"):
        read_job(tmp_path / "b.yaml")
    with pytest.raises(InputError, match=r"there is no configuration .*none\.yaml"):
        read_job(tmp_path / "none.yaml")


def test_one_call_trains_scores_keeps_and_resumes(tmp_path, capsys):
    told: list[str] = []
    results = run_job(TINY, tmp_path, resume=True, threads=1, say=told.append)
    assert told == [f"nothing to resume in {tmp_path}; beginning"]
    assert results == json.loads((tmp_path / "results.json").read_text())
    assert (results["epochs"], set(results)) == (2, {"epochs", "minutes", "held_out", "test_accuracy"})
    assert torch.get_num_threads() == 1
    assert "epoch 2/2: loss" in capsys.readouterr().err
    again = run_job(TINY, tmp_path, resume=True, observers=[], say=told.append)
    assert again["test_accuracy"] == results["test_accuracy"]
    assert len(told) == 1
    assert capsys.readouterr().err == ""


def test_a_stop_says_how_to_go_on_once_there_is_something_to_go_on_with(tmp_path):
    def interrupt() -> None:
        raise KeyboardInterrupt

    told: list[str] = []
    for step, words in ((1, []), (30, ["stopped; go on with --resume"])):
        with pytest.raises(KeyboardInterrupt):
            run_job(TINY, tmp_path / str(step), observers=[tiny.At(step, interrupt)], say=told.append)
        assert told == words


def test_tensorboard_watches_beside_what_was_asked_for(tmp_path, monkeypatch):
    made = []

    class Board(ncttt.training.Observer):
        def __init__(self, folder):
            made.append(folder)

        def epoch(self, epoch):
            made.append(epoch.number)

    monkeypatch.setattr(ncttt.training.launch, "TensorBoard", Board)
    run_job(TINY, tmp_path, tensorboard=True, observers=[])
    assert made == [tmp_path, 1, 2]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"resize": "stretch"}, "found 'stretch'"),
        ({"image_size": 0}, "image_size must be a number of pixels from 1, found 0"),
        ({"image_size": 32, "resize": "crop(31)"}, "too few to cut 32 out of it"),
    ],
)
def test_photographs_that_cannot_be_resized_so(settings, message):
    with pytest.raises(InputError, match=message):
        Job(data="photos", **settings)
