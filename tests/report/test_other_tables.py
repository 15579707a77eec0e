"""The tables of commands: the summary of rows, the shares of an attribution, the trials of a tuning."""

from types import SimpleNamespace

import pytest
from page_rows import page_rows

from ncttt.benchmark import Attribution, Difference
from ncttt.benchmark.attribution import Subject
from ncttt.report import attribution_table, render, summary_table, tuning_table
from ncttt.report.table import cell_text


def texts(table) -> list[list[str]]:
    return [[table.corner, *table.columns], *([line.name, *map(cell_text, line.cells)] for line in table.lines)]


def test_a_summary_has_a_line_for_each_method_and_names_what_differs():
    rows = [row | {"seed": seed, "accuracy": row["accuracy"] + 0.02 * seed} for seed in (0, 1) for row in page_rows()]
    rows = [row for row in rows if row["corruption"] != "clean" and row["method"] in ("source", "tent")]
    header, source, tent = texts(summary_table(rows))
    assert header == [
        "method",
        "checkpoint",
        "needs of the source",
        "accuracy %",
        "ECE",
        "images/s",
        "corruptions",
        "seeds",
    ]
    assert source == ["source", "small", "nothing", "42.50 ± 1.41", "0.100", "500", "2", "2"]
    assert tent[3] == "63.50 ± 1.41"
    online = [row | {"protocol": "online", "stop": "source"} for row in rows]
    header, *lines = texts(summary_table(rows + online))
    assert header[:4] == ["protocol", "method", "checkpoint", "stop"]
    assert [line[:4] for line in lines[1:3]] == [
        ["episodic", "tent", "small", ""],
        ["online", "source", "small", "source"],
    ]


def test_rows_of_other_images_are_not_put_together():
    rows = page_rows({"tent": 0.0}, ("fog",))
    assert len(summary_table([*rows, rows[0] | {"images_digest": "others"}]).lines) == 2


def test_an_attribution_shows_its_shares_with_intervals():
    subject = Subject("nc_ttt", "small", "digits", "episodic", 5, "random", 100)
    gains = [Difference(0.2, 0.1, 0.3), Difference(0.021, 0.01, 0.032), Difference(0.221, 0.2, 0.25)]
    header, line = texts(attribution_table([Attribution(subject, {"source": 0.5, "batch": 0.7}, *gains)]))
    assert header[:6] == ["method", "checkpoint", "protocol", "source", "batch", "statistics"]
    assert line == [
        "nc_ttt", "small", "episodic", "50.00", "70.00",
        "+20.00 [+10.00, +30.00]", "+2.10 [+1.00, +3.20]", "+22.10 [+20.00, +25.00]",
    ]  # fmt: skip


@pytest.mark.parametrize("confirmed", [0, 1])
def test_a_tuning_shows_fresh_images_where_there_are_some(confirmed):
    trials = [measured({"lr": 0.1, "moves": "layer1"}, 0.8), measured({}, 0.7)]
    header, first, second = texts(tuning_table(trials, [measured({"lr": 0.1, "moves": "layer1"}, 0.75)][:confirmed]))
    assert header == [
        "settings",
        "accuracy %",
        "gain of the steps",
        *["on fresh images", "gain there"][: 2 * confirmed],
    ]
    again = ["75.00", "+1.00 [+0.50, +1.50]"]
    assert first == ["lr=0.1 moves=layer1", "80.00", "+1.00 [+0.50, +1.50]", *again[: 2 * confirmed]]
    assert second == ["as it is", "70.00", "+1.00 [+0.50, +1.50]", *["", ""][: 2 * confirmed]]


def test_every_table_has_every_form():
    table = summary_table(page_rows())
    for form in ("terminal", "markdown", "latex", "csv"):
        assert "tent" in render(table, form)


def measured(settings: dict, accuracy: float):
    trial = SimpleNamespace(settings=settings)
    return SimpleNamespace(trial=trial, accuracy=accuracy, gain=Difference(0.01, 0.005, 0.015))
