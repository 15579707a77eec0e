"""What one sees of a training: lines in a log, a bar on a terminal, events for TensorBoard."""

import importlib.util
import io

import pytest
import tiny

import ncttt
from ncttt.data import load
from ncttt.training.watching import Bar, Lines, TensorBoard, watcher

SETTINGS = {"epochs": 2, "batch_size": 32, "auxiliary_weight": 1.0}


def test_lines_say_losses_accuracy_speed_and_time_left():
    file = io.StringIO()
    ncttt.train(tiny.model(), tiny.digits(64), observers=[Lines(file)], **SETTINGS)
    first, last = file.getvalue().splitlines()
    assert first.startswith("epoch 1/2: loss ")
    for word in ("accuracy", "images/s", "left"):
        assert word in first
    assert last.endswith("0:00 left")


def test_the_bar_shows_epochs_and_is_gone_at_the_end(capsys):
    bar = Bar()
    with pytest.warns(UserWarning, match="learned nothing"):
        ncttt.train(tiny.model(), tiny.digits(64), held_out=load("digits", "val"), observers=[bar], **SETTINGS)
    shown = capsys.readouterr().err
    assert "epoch 2/2: loss" in shown
    assert "held out" in shown
    assert not bar.progress.live.is_started


def test_elsewhere_than_on_a_terminal_there_are_lines(capsys):
    assert isinstance(watcher(), Lines)


def test_tensorboard_is_an_extra(tmp_path):
    if importlib.util.find_spec("tensorboard") is None:
        with pytest.raises(ncttt.InputError, match=r"pip install 'ncttt\[tensorboard\]'"):
            TensorBoard(tmp_path)
        return
    ncttt.train(tiny.model(), tiny.digits(64), observers=[TensorBoard(tmp_path)], **SETTINGS)
    assert list(tmp_path.glob("events*"))
