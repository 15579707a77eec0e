"""Progress: lines in a log, a bar on a terminal."""

import io
import re
import sys

import pytest

from ncttt.base import progress
from ncttt.base.progress import ProgressDisplay, clock


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    def plain(self) -> str:
        return re.sub(r"\x1b\[[?\d;]*[a-zA-Z]", "", self.getvalue())


@pytest.fixture
def now(monkeypatch) -> list[float]:
    """The clock of the display, which the test turns."""
    time = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: time[0])
    return time


def on_terminal(monkeypatch) -> Terminal:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "150")
    return screen


def test_a_line_every_ten_seconds_and_one_at_the_end(now, capsys):
    with ProgressDisplay("cells", 40, done=10) as display:
        for done, second in ((11, 4), (20, 12), (25, 18), (30, 22.5)):
            now[0] = 100 + second
            display.update(done, f"cell {done}")
        now[0] = 130
        display.advance(10, "last one:")
    assert not display.live
    assert capsys.readouterr().err.splitlines() == [
        "20/40 cells, 0:24 left: cell 20",  # ten took twelve seconds, twenty are left
        "30/40 cells, 0:11 left: cell 30",
        "40/40 cells, 0:00 left: last one:",
    ]


def test_without_a_total_nobody_knows_what_is_left(now, capsys):
    display = ProgressDisplay("bytes")
    now[0] += 11
    display.update(7)
    assert capsys.readouterr().err == "7 bytes\n"
    display.update(8, total=16)
    now[0] += 11
    display.update(9)
    assert capsys.readouterr().err == "9/16 bytes, 0:17 left\n"


def test_lines_can_be_left_out_but_what_is_said_is_said(now, capsys):
    with ProgressDisplay("steps", 2, lines=False) as display:
        now[0] += 60
        display.advance(2, "done")
        display.say("a [line] of its own")
        assert display.seconds_left() == 0
    assert capsys.readouterr().err == "a [line] of its own\n"


def test_the_time_left_is_that_of_the_pace_since_the_start(now):
    display = ProgressDisplay("cells", 100, done=90)
    now[0] += 3
    assert display.seconds_left() == 30  # nothing is done yet: as if the first were
    display.update(93)
    assert display.seconds_left() == 7


def test_a_bar_on_a_terminal(monkeypatch):
    screen = on_terminal(monkeypatch)
    with ProgressDisplay("cells", 4) as display:
        assert display.live
        display.advance(state="now [3]")
        display.say("a [line] of its own, which is not to be folded " + "x" * 150)
        display.update(4)
    shown = screen.plain()
    assert "a [line] of its own, which is not to be folded " + "x" * 150 in shown
    assert re.search(r"cells ━+ 4/4 .* now \[3\]", shown.splitlines()[-1].split("\r")[-1])
    assert screen.getvalue().count("\x1b[?25l") == screen.getvalue().count("\x1b[?25h") == 1


def test_the_bar_is_taken_down_after_an_error(monkeypatch):
    screen = on_terminal(monkeypatch)
    with pytest.raises(ZeroDivisionError), ProgressDisplay("cells", 4):
        raise ZeroDivisionError
    assert screen.getvalue().count("\x1b[?25h") == 1


def test_bytes_are_shown_as_sizes(monkeypatch):
    screen = on_terminal(monkeypatch)
    with ProgressDisplay("bytes", 2_000_000) as display:
        display.update(1_000_000)
    assert "1.0/2.0 MB" in screen.plain()


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0:00"), (59.6, "1:00"), (61, "1:01"), (3599.4, "59:59"), (3600, "1:00:00")]
)
def test_clock(seconds, text):
    assert clock(seconds) == text
