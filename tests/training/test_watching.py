"""What one sees of a training: lines in a log, a bar on a terminal, events for TensorBoard."""

import importlib.util
import io
import itertools
import re
import sys
from types import SimpleNamespace

import pytest
import tiny

import ncttt
from ncttt.data import load
from ncttt.training import watching
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


def test_the_bar_says_losses_accuracy_and_speed(monkeypatch):
    bar, clock = Bar(), itertools.count()
    monkeypatch.setattr(watching, "time", SimpleNamespace(monotonic=lambda: next(clock)))  # a second a look
    ncttt.train(tiny.model(), tiny.digits(64), observers=[bar], **SETTINGS)
    (task,) = bar.progress.tasks
    assert re.fullmatch(r"loss \d\.\d{3} \+ \d\.\d{3}, accuracy \d+\.\d%, 32 images/s", task.fields["state"])
    assert task.completed == task.total == 4


def test_a_bar_that_looks_seldom_ends_full():
    bar = Bar()
    ncttt.train(tiny.model(), tiny.digits(64), observers=[bar], **SETTINGS)
    assert bar.progress.tasks[0].completed == bar.progress.tasks[0].total


def test_elsewhere_than_on_a_terminal_there_are_lines(capsys):
    assert isinstance(watcher(), Lines)


def test_tensorboard_is_an_extra(tmp_path):
    if importlib.util.find_spec("tensorboard") is None:
        with pytest.raises(ncttt.InputError, match=r"pip install 'ncttt\[tensorboard\]'"):
            TensorBoard(tmp_path)
        return
    ncttt.train(tiny.model(), tiny.digits(64), observers=[TensorBoard(tmp_path)], **SETTINGS)
    assert list(tmp_path.glob("events*"))


def test_tensorboard_gets_every_figure_of_every_epoch(tmp_path, monkeypatch):
    written, ended = [], []

    class SummaryWriter:
        def __init__(self, folder):
            assert folder == str(tmp_path)

        def add_scalar(self, name, value, epoch):
            written.append((name, value, epoch))

        def close(self):
            ended.append(True)

    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", SimpleNamespace(SummaryWriter=SummaryWriter))
    history = ncttt.train(tiny.model(), tiny.digits(64), observers=[TensorBoard(tmp_path)], **SETTINGS)
    assert ("cross_entropy", history[1].cross_entropy, 2) in written
    assert {epoch for _, _, epoch in written} == {1, 2}
    assert ended == [True]
