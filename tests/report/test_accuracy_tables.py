"""Rows become tables: right means, right deviations, one table for each setup, nothing mixed."""

import json
import re
import subprocess
import sys

import pytest
from report_rows import number, row

from ncttt import METHODS, InputError
from ncttt.data.corruptions import CLEAN, CORRUPTIONS, EXTRA
from ncttt.report import tables
from ncttt.report.names import corruption_order, method_order


def test_names_are_in_the_order_of_their_homes():
    corruptions = [CLEAN, *CORRUPTIONS, *EXTRA]
    assert sorted(sorted(corruptions), key=corruption_order) == corruptions
    assert sorted(sorted(METHODS), key=method_order) == list(METHODS)


def test_a_method_that_a_row_names_by_its_address_comes_last_and_is_not_imported(tmp_path, monkeypatch):
    (tmp_path / "their_method.py").write_text("raise RuntimeError('foreign code has run')")
    monkeypatch.chdir(tmp_path)
    settings = json.dumps({"name": "their_method:Theirs"})
    (table,) = tables([row("their_method:Theirs", "fog", 0.5, settings=settings), row("nc_ttt", "fog", 0.6)])
    assert table.columns == ("nc_ttt", "their_method:Theirs")


def test_lines_are_in_the_benchmarks_order_and_columns_in_the_papers():
    rows = [
        row(method, corruption, 0.5)
        for method in ("own", "nc_ttt", "tent", "source")
        for corruption in ("jpeg_compression", "saturate", "fog", "clean", "gaussian_noise")
    ]
    (table,) = tables(rows)
    assert table.columns == ("source", "tent", "nc_ttt", "own")
    names = ["Clean", "Gaussian noise", "Fog", "JPEG compression", "Saturate"]
    assert [line.name for line in table.lines] == names
    assert table.corner == "Corruption"


def test_mean_and_deviation_over_seeds_by_hand():
    accuracies = {"fog": (0.60, 0.64), "snow": (0.70, 0.70)}
    rows = [row("tent", name, value, seed=seed) for name, both in accuracies.items() for seed, value in enumerate(both)]
    (table,) = tables(rows)
    fog, mean = number(table, "Fog", "tent"), number(table, "Mean of 2", "tent")
    assert (fog.mean, fog.deviation) == pytest.approx((62.0, 2 * 2**0.5))
    assert number(table, "Snow", "tent").deviation == pytest.approx(0)
    assert (mean.mean, mean.deviation) == pytest.approx((66.0, 2**0.5))  # of the seeds' means 65 and 67


def test_one_seed_has_no_deviation_and_unlike_seeds_give_the_mean_none():
    (table,) = tables([row("tent", "fog", 0.6), row("tent", "snow", 0.5), row("tent", "snow", 0.9, seed=1)])
    assert number(table, "Fog", "tent").deviation is None
    mean = number(table, "Mean of 2", "tent")
    assert (mean.mean, mean.deviation) == (pytest.approx(65.0), None)


def test_clean_images_are_in_every_table_but_not_in_the_mean():
    rows = [row("tent", "clean", 0.9)]
    rows += [row("tent", name, 0.5, severity=level) for level in (1, 5) for name in ("fog", "snow")]
    first, second = tables(rows)
    assert "severity 1" in first.title
    assert "severity 5" in second.title
    for table in (first, second):
        assert number(table, "Clean", "tent").mean == pytest.approx(90)
        assert table.total.name == "Mean of 2"
        assert number(table, "Mean of 2", "tent").mean == pytest.approx(50)


def test_clean_images_of_another_protocol_stay_away():
    first, second = tables([row("tent", "clean", 0.9), row("tent", "fog", 0.5, protocol="online")])
    assert [line.name for line in first.lines] == ["Clean"]
    assert first.total is None
    assert [line.name for line in second.lines] == ["Fog"]


@pytest.mark.parametrize(
    ("axis", "values"),
    {"severity": (3, 5), "protocol": ("episodic", "online"), "batch_size": (16, 128), "images": (10, 20)}.items(),
)
def test_an_axis_that_varies_makes_a_table_each(axis, values):
    rows = [row("tent", "fog", 0.1 * n, **{axis: value}) for n, value in enumerate(values, start=1)]
    found = tables(rows)
    assert [number(table, "Fog", "tent").mean for table in found] == pytest.approx([10, 20])
    for table, value in zip(found, values, strict=True):
        assert f"{axis.replace('_', ' ')} {value}" in table.title


def test_a_title_names_no_more_than_it_must():
    parts = json.dumps({"fog": 0.5, "snow": 0.5})
    rows = [row("tent", "fog", 0.5), row("tent", "fog", 0.5, images=10)]
    rows.append(row("tent", "fog+snow", 0.5, images=20, protocol="continual", accuracy_of_parts=parts))
    start = "Accuracy (%) on cifar10, severity 5, protocol"
    assert [table.title for table in tables(rows)] == [
        f"{start} episodic, batch size 100, images 10",
        f"{start} episodic, batch size 100, images 1000",
        f"{start} continual, batch size 100",
    ]


def test_a_missing_cell_leaves_a_gap_and_no_mean():
    (table,) = tables([row("tent", "fog", 0.5), row("tent", "snow", 0.5), row("ttt", "fog", 0.6)])
    assert number(table, "Snow", "ttt") is None
    assert number(table, "Mean of 2", "ttt") is None
    assert number(table, "Mean of 2", "tent").mean == 50
    assert table.notes


def test_checkpoints_are_named_only_where_a_label_has_several():
    rows = [row("source", "fog", 0.5, checkpoint="a"), row("tent", "fog", 0.5, checkpoint="a")]
    rows.append(row("tent", "fog", 0.6, checkpoint="b"))
    (table,) = tables(rows)
    assert table.columns == ("source", "tent, a", "tent, b")


def test_settings_that_differ_make_columns_that_say_so():
    rows = [row("tent", "fog", lr, settings=json.dumps({"name": "tent", "lr": lr, "steps": 1})) for lr in (0.25, 0.5)]
    (table,) = tables(rows)
    assert table.columns == ("tent, lr=0.25", "tent, lr=0.5")
    assert number(table, "Fog", "tent, lr=0.5").mean == 50


def test_a_row_from_before_a_setting_existed_shares_the_column_of_its_old_value():
    old, same, new = (
        {"settings": json.dumps({"clusters": 10, "name": "clust3"} | more)}
        for more in ({}, {"reduction": "mean"}, {"reduction": "sum"})
    )
    rows = [row("clust3", "fog", 0.5, **old), row("clust3", "snow", 0.6, **same)]
    (table,) = tables(rows)
    assert table.columns == ("clust3",)
    (table,) = tables([*rows, row("clust3", "fog", 0.7, **new)])
    assert table.columns == ("clust3, reduction=mean", "clust3, reduction=sum")


def test_a_stream_of_several_corruptions_is_shown_by_its_parts():
    parts = json.dumps({"snow": 0.4, "fog": 0.6})
    (table,) = tables([row("tent", "snow+fog", 0.5, protocol="continual", accuracy_of_parts=parts)])
    assert [line.name for line in table.all_lines] == ["Snow", "Fog", "Mean of 2"]
    assert number(table, "Mean of 2", "tent").mean == pytest.approx(50)


def test_streams_of_other_sequences_are_not_mixed():
    rows = [
        row("tent", "+".join(names), 0.5, protocol="continual", accuracy_of_parts=json.dumps(dict.fromkeys(names, 0.5)))
        for names in (("snow", "fog"), ("fog", "snow"))
    ]
    assert len(tables(rows)) == 2


def test_the_best_is_bold_by_what_is_not_rounded_and_ties_share_it():
    rows = [row("source", "fog", 0.70001), row("tent", "fog", 0.70004)]
    rows += [row("source", "snow", 0.5), row("tent", "snow", 0.5)]
    (table,) = tables(rows)
    assert [cell.bold for cell in table.lines[1].cells] == [False, True]
    assert [cell.bold for cell in table.lines[0].cells] == [True, True]
    assert [cell.bold for cell in table.total.cells] == [False, True]


def test_ties_survive_the_order_of_seeds():
    values = (0.1, 0.7, 0.3)
    rows = [row("source", "fog", value, seed=seed) for seed, value in enumerate(values)]
    rows += [row("tent", "fog", value, seed=seed) for seed, value in enumerate(reversed(values))]
    (table,) = tables(rows)
    assert all(cell.bold for cell in table.lines[0].cells)


def test_a_single_column_has_no_best():
    (table,) = tables([row("tent", "fog", 0.5)])
    assert not table.lines[0].cells[0].bold


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "no rows were given"),
        ([row("a", "fog", 0.5), row("a", "fog", 0.5, data="digits")], "these rows are of cifar10, digits"),
        ([row("a", "fog", 0.5), row("a", "fog", 0.6)], "two rows of a on small with seed 0 are of fog"),
        ([row("a", "fog", None)], "found one without accuracy"),
        ([row("a", "fog", 0.5, settings="[]"), row("b", "fog", 0.5)], "JSON object; found '[]'"),
    ],
)
def test_rows_that_make_no_table_are_refused(rows, message):
    with pytest.raises(InputError, match=re.escape(message)):
        tables(rows)


def test_tables_and_pages_need_no_torch(tmp_path):
    rows = [row(method, name, 0.5) for method in ("source", "ptbn", "own") for name in ("clean", "fog", "fog+snow")]
    code = (
        "import sys, json\n"
        "from ncttt.report import render, tables\n"
        "from ncttt.report.page import write_page\n"
        "rows = json.loads(sys.argv[1])\n"
        "render(tables(rows), 'latex')\n"
        "write_page(rows, sys.argv[2])\n"
        "print([name for name in ('torch', 'scipy', 'matplotlib') if name in sys.modules])\n"
    )
    ran = subprocess.run([sys.executable, "-c", code, json.dumps(rows), tmp_path], capture_output=True, text=True)
    assert ran.stdout.strip() == "[]", ran.stderr
    assert (tmp_path / "index.html").is_file()
