"""The live view: names, numbers and the alarm at any width, no wrapped line, and lines where nobody watches."""

import io
import sys

import pytest
from rich.console import Console

from demo.drift_records import Played, records
from ncttt.demo import live
from ncttt.demo.bars import bars, columns_of, labels_under

WIDTHS = (60, 80, 140)
HIDDEN, SHOWN = "\x1b[?25l", "\x1b[?25h"  # the cursor


def frame(count, width, domains=None, **of_records):
    """The lines of the view after so many records."""
    played = Played(records(domains or Played([]).domains, **of_records), domains or Played([]).domains)
    view = live.view_of(played)
    view.records = list(played)[:count]
    console = Console(record=True, width=width, force_terminal=True, file=io.StringIO())
    console.print(view)
    return console.export_text().rstrip("\n").split("\n")


@pytest.mark.parametrize("width", WIDTHS)
def test_the_view_shows_names_numbers_and_the_alarm(width):
    text = "\n".join(frame(10, width))
    assert "500 of 1,000 images" in text
    assert "now: Glass blur" in text
    assert "DRIFT ALARM" in text
    for name in ("frozen", "adapted", "Frost", "Contrast", "25.0 %", "80.0 %", "100 % of batches"):
        assert name in text


@pytest.mark.parametrize("width", WIDTHS)
def test_every_frame_has_the_same_lines_and_none_is_wrapped(width):
    frames = [frame(count, width) for count in range(21)]
    assert {len(lines) for lines in frames} == {len(frames[0])}
    assert len(frames[0]) <= 23  # a terminal of 24 lines shows all of it
    assert {len(line) for lines in frames for line in lines} == {width}


def test_clean_images_raise_no_alarm():
    assert "no alarm" in "\n".join(frame(2, 80))
    assert "ALARM" not in "\n".join(frame(2, 80))


@pytest.mark.parametrize("width", WIDTHS)
def test_names_that_look_like_markup_are_shown_as_they_are(width):
    lines = frame(6, width, domains=("clean", "[red]x[/red]"))
    assert "[red]x[/red]" in "\n".join(lines)
    assert {len(line) for line in lines} == {width}


@pytest.mark.parametrize("width", WIDTHS)
def test_long_names_and_many_batches_fit(width):
    lines = frame(900, width, domains=("clean", "a_very_long_name_of_a_corruption", "clean"), batches=300)
    assert {len(line) for line in lines} == {width}
    assert "45,000 of 45,000 images" in "\n".join(lines)


def test_accuracies_so_far_are_means_over_images():
    text = "\n".join(frame(8, 80))  # four clean and four shifted batches
    assert "62.0 %" in text  # frozen: (99 + 25) / 2
    assert "89.5 %" in text  # adapted: (99 + 80) / 2


def test_a_terminal_gets_the_picture_and_its_cursor_back():
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=80)
    assert live._drawn(Played(records()), console) == records()
    assert screen.getvalue().rindex(SHOWN) > screen.getvalue().rindex(HIDDEN)


def test_an_interrupted_view_gives_the_cursor_back():
    screen = io.StringIO()
    with pytest.raises(KeyboardInterrupt):
        live._drawn(Played(records(), interrupted=7), Console(file=screen, force_terminal=True, width=80))
    assert screen.getvalue().rindex(SHOWN) > screen.getvalue().rindex(HIDDEN)
    assert sys.stderr is not screen


def test_elsewhere_there_is_a_plain_line_a_domain(capsys):
    assert live.watch(Played(records())) == records()
    shown = capsys.readouterr()
    assert shown.out == ""
    lines = shown.err.splitlines()
    assert [line.partition(",")[0] for line in lines] == ["Clean", "Frost", "Glass blur", "Contrast", "Clean"]
    assert "frozen model 25.0 % right, adapted 80.0 %; drift alarm in 100 % of batches" in lines[1]
    assert "\x1b" not in shown.err


@pytest.mark.parametrize(
    ("terminal", "environment", "watched"),
    [
        (True, {"TERM": "xterm"}, True),
        (False, {"TERM": "xterm"}, False),
        (True, {"TERM": "dumb"}, False),
        (True, {"TERM": "xterm", "NO_COLOR": "1"}, False),
        (True, {"TERM": "xterm", "CI": "true"}, False),
    ],
)
def test_only_a_terminal_that_can_draw_is_drawn_on(terminal, environment, watched, monkeypatch):
    for name in ("NO_COLOR", "CI"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    assert live.is_watched() is watched


def test_the_finding_is_made_from_the_shifted_images():
    assert live.finding(records()) == (
        "Of the shifted images the frozen model had 25.0 % right, the adapted one 80.0 %; "
        "batch statistics alone, without a step, 75.0 %."
    )


def test_the_drift_signal_rises_as_p_falls():
    heights = [live.drift(p) for p in (1.0, 0.5, 0.01, 1e-20, 1e-300, 0.0)]
    assert heights == sorted(heights)
    assert (heights[0], heights[-1]) == (0.0, 1.0)


@pytest.mark.parametrize("width", [1, 7, 50, 333])
def test_columns_are_means_of_the_batches_they_stand_for(width):
    values = [number / 100 for number in range(100)]
    columns = columns_of(values, 100, width)
    assert len(columns) == width
    assert columns == sorted(columns)
    assert columns_of(values[:50], 100, width).count(None) == width - -(-width // 2)


def test_bars_have_the_height_of_their_value():
    rows = bars([number / 24 for number in range(25)], height=3)
    eighths = [sum(" ▁▂▃▄▅▆▇█".index(row[column]) for row in rows) for column in range(25)]
    assert eighths == [1, *range(1, 25)]  # nothing right is still a batch that was seen


@pytest.mark.parametrize("width", [3, 10, 49])
def test_labels_are_as_wide_as_the_bars(width):
    assert len(labels_under(["one", "two and more", "three"], width)) == width
