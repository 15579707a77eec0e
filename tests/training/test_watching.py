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
from ncttt.training.watching import TensorBoard

SETTINGS = {"epochs": 2, "batch_size": 32, "auxiliary_weight": 1.0}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def terminal(monkeypatch) -> Terminal:
    """Let standard error be a terminal; what it is sent."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "xterm")
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    return screen


def test_lines_say_losses_accuracy_speed_and_time_left(capsys):
    ncttt.train(tiny.model(), tiny.digits(64), **SETTINGS)
    first, last = capsys.readouterr().err.splitlines()
    number = r"\d\.\d{3}"
    assert re.fullmatch(rf"epoch 1/2: loss {number} \+ {number}, accuracy \d+\.\d%, \d+ images/s, 0:0\d left", first)
    assert last.startswith("epoch 2/2: loss ")
    assert last.endswith("0:00 left")


def test_the_bar_shows_epochs_and_is_gone_at_the_end(monkeypatch):
    screen = terminal(monkeypatch)
    with pytest.warns(UserWarning, match="learned nothing"):
        ncttt.train(tiny.model(), tiny.digits(64), held_out=load("digits", "val"), **SETTINGS)
    shown = screen.getvalue()
    assert re.search(r"epoch 2/2: loss \d\.\d{3} \+ \d\.\d{3}, accuracy \d+\.\d%, held out \d+\.\d%", shown)
    assert shown.count("\x1b[?25l") == shown.count("\x1b[?25h") == 1  # the cursor was hidden, and is back


def test_the_bar_says_losses_accuracy_and_speed(monkeypatch):
    screen, clock = terminal(monkeypatch), itertools.count()
    monkeypatch.setattr(watching, "time", SimpleNamespace(monotonic=lambda: next(clock)))  # a second a look
    ncttt.train(tiny.model(), tiny.digits(64), **SETTINGS)
    last = plain(screen).splitlines()[-1]
    assert re.search(r"training .* 4/4 .* loss \d\.\d{3} \+ \d\.\d{3}, accuracy \d+\.\d%, 32 images/s", last)


def test_a_bar_that_looks_seldom_ends_full(monkeypatch):
    screen = terminal(monkeypatch)
    ncttt.train(tiny.model(), tiny.digits(64), **SETTINGS)
    assert re.search(r"training .* 4/4 ", plain(screen).splitlines()[-1])


def plain(screen: Terminal) -> str:
    """What was sent, without colours and movements of the cursor."""
    return re.sub(r"\x1b\[[?\d;]*[a-zA-Z]", "", screen.getvalue()).replace("\r", "\n").strip()


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
