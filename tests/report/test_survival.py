"""Who survives what: gains on each kind of stream, judged against batch statistics and the source model."""

import json

import pytest
from page_reader import read_page
from report_rows import number, row

from ncttt.benchmark import Store, run_grid
from ncttt.benchmark.entries import Entry
from ncttt.benchmark.grid import Grid
from ncttt.report import render, survival_tables
from ncttt.report.page import write_page
from ncttt.report.streams import domains_of, kind_of
from ncttt.report.table import cell_text

NORMS = {"source": "source", "ptbn": "batch", "tent": "batch", "rotta": "batch"}
# Accuracy of source, ptbn, tent and rotta on each stream.
STREAMS = {
    ("random", 128): (0.40, 0.60, 0.62, 0.581),
    ("random", 1): (0.40, 0.20, 0.39, 0.41),
    ("dirichlet(0.1)", 128): (0.40, 0.50, 0.479, 0.45),
    ("random+visits(2)", 128): (0.40, 0.60, 0.58, 0.61),
}


def measured(method: str, accuracy: float, order: str, size: int, **changes) -> dict:
    settings = json.dumps({"name": method, "norm": NORMS.get(method, "batch")})
    images = 2000 * (2 if "visits" in order else 1)
    stream = {"order": order, "batch_size": size, "protocol": "continual", "images": images}
    return row(method, "fog+snow", accuracy, settings=settings, weights="same", **(stream | changes))


def stream_rows(**changes) -> list[dict]:
    return [
        measured(method, accuracy, order, size, **changes)
        for (order, size), accuracies in STREAMS.items()
        for method, accuracy in zip(NORMS, accuracies, strict=True)
    ]


def test_gains_are_over_the_source_model_and_words_say_who_falls_and_who_fails():
    (table,) = survival_tables(stream_rows())
    assert table.columns[2:] == ("random 128", "random 1", "dirichlet(0.1) 128", "visits(2) 128")
    lines = {line.name: [cell_text(cell) for cell in line.cells] for line in table.all_lines}
    assert lines == {
        "PTBN": ["nothing", "3 of 4", "+20.0", "-20.0 (fails)", "+10.0", "+20.0"],
        "RoTTA": ["nothing", "3 of 4", "+18.1", "+1.0", "+5.0 (falls)", "+21.0"],
        "TENT": ["nothing", "2 of 4", "+22.0", "-1.0 (fails)", "+7.9 (falls)", "+18.0"],
        "Source: accuracy (%)": ["", "", "40.0", "40.0", "40.0", "40.0"],
    }
    assert next(iter(lines)) == "RoTTA"  # as many streams as PTBN, and more points
    assert "falls" in " ".join(table.notes)


def test_two_points_are_still_allowed_and_the_best_of_a_stream_is_bold():
    rows = [row | {"accuracy": 0.58} if row["method"] == "rotta" else row for row in stream_rows()]
    (table,) = survival_tables(rows)
    assert number(table, "RoTTA", "random 128").remark == ""
    assert number(table, "TENT", "random 128").bold
    assert not number(table, "RoTTA", "random 128").bold


def test_one_kind_of_stream_with_one_batch_size_needs_no_such_table():
    rows = [row for row in stream_rows() if (row["order"], row["batch_size"]) == ("random", 128)]
    assert survival_tables(rows) == []
    assert survival_tables([row for row in stream_rows() if row["method"] != "source"]) == []


def test_without_batch_statistics_a_method_is_judged_by_the_source_alone():
    (table,) = survival_tables([row for row in stream_rows() if row["method"] != "ptbn"])
    assert cell_text(number(table, "TENT", "random 128")) == "+22.0 (no PTBN)"
    assert cell_text(number(table, "TENT", "random 1")) == "-1.0 (fails)"
    assert number(table, "TENT", "Survives") == "0 of 4"


def test_every_method_is_compared_with_its_own_checkpoint():
    own = [
        measured(method, accuracy + 0.1, order, size, checkpoint="runs/mine/last") | {"weights": "other"}
        for (order, size), accuracies in STREAMS.items()
        for method, accuracy in (("source", accuracies[0]), ("ptbn", accuracies[1]), ("nc_ttt", 0.55))
    ]
    (table,) = survival_tables([*stream_rows(), *own])
    assert number(table, "NC-TTT", "random 128").mean == pytest.approx(65 - 50)
    assert number(table, "NC-TTT", "random 128").remark == "falls"  # batch statistics have 70 on this checkpoint
    assert number(table, "NC-TTT", "Needs of the source") == "own training"
    assert "runs/mine" not in render(table)


def test_a_mean_over_fewer_seeds_is_not_shown():
    rows = [*stream_rows(), *stream_rows(seed=1)]
    rows = [row for row in rows if (row["method"], row["order"], row["seed"]) != ("tent", "dirichlet(0.1)", 1)]
    (table,) = survival_tables(rows)
    assert number(table, "TENT", "dirichlet(0.1) 128") is None
    assert number(table, "TENT", "Survives") == "2 of 3"


def test_other_severities_protocols_and_images_have_tables_of_their_own():
    rows = [*stream_rows(), *stream_rows(severity=3), *stream_rows(protocol="online")]
    rows += [row | {"key": f"fewer {row['key']}", "images": row["images"] // 2} for row in stream_rows()]
    assert [table.title.split(", ", 1)[1] for table in survival_tables(rows)] == [
        "severity 3, protocol continual, 1000 images a domain",
        "severity 5, protocol continual, 1000 images a domain",
        "severity 5, protocol continual, 500 images a domain",
        "severity 5, protocol online, 1000 images a domain",
    ]


def test_the_page_and_its_tables_show_who_survives(tmp_path):
    page = read_page(write_page(stream_rows(), tmp_path))
    section = page.one("section", id="survival")
    assert section.one("p", class_="takeaway").text == "RoTTA survives 3 of 4 streams, PTBN 3 of 4 and TENT 2 of 4."
    lines = {line.one("th").text: [cell.text for cell in line.all("td")] for line in section.one("tbody").all("tr")}
    assert lines["TENT"][2:] == ["+22.0", "-1.0 (fails)", "+7.9 (falls)", "+18.0"]
    assert "-1.0 (fails)" in (tmp_path / "tables.md").read_text()
    once = [row for row in stream_rows() if (row["order"], row["batch_size"]) == ("random", 128)]
    assert not read_page(write_page(once, tmp_path / "once")).all("section", id="survival")


def test_a_measured_grid_of_streams_makes_the_table(checkpoint, tmp_path):
    entries = [Entry(method=name, checkpoint=checkpoint) for name in ("source", "ptbn", "tent")]
    streams = {"protocols": ["continual"], "sequences": ["once", "visits(2)"], "batch_sizes": [5, 20]}
    shifts = {"corruptions": ["fog", "contrast"], "images": 40, "constants": "imagenet"}
    with Store(tmp_path / "rows.sqlite") as store:
        rows = run_grid(Grid(data="digits", methods=entries, **shifts, **streams), store, executor="here").rows
    assert list(dict.fromkeys(map(kind_of, rows))) == ["random", "visits(2)"]
    assert {row["images"] // len(domains_of(row)) for row in rows} == {40}
    (table,) = survival_tables(rows)
    assert table.columns[2:] == ("random 20", "random 5", "visits(2) 20", "visits(2) 5")
    by = {(row["method"], row["order"], row["batch_size"]): 100 * row["accuracy"] for row in rows}
    gain = by["tent", "random+visits(2)", 5] - by["source", "random+visits(2)", 5]
    assert number(table, "TENT", "visits(2) 5").mean == pytest.approx(gain)
