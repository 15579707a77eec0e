"""Ours beside the paper's: right pairs, right differences, misprints named, nothing made up."""

import re

import pytest
from report_rows import number, row

from ncttt import InputError
from ncttt.data.corruptions import CORRUPTIONS
from ncttt.report import paper_accuracy, render, vs_paper


def test_ours_theirs_and_the_difference():
    rows = [row("nc_ttt", "fog", 0.80), row("nc_ttt", "snow", 0.90), row("tent", "fog", 0.70), row("tent", "snow", 0.7)]
    (table,) = vs_paper(rows)
    assert table.columns[:3] == ("tent", "tent paper", "tent difference")
    assert number(table, "Fog", "nc_ttt").mean == pytest.approx(80)
    assert number(table, "Fog", "nc_ttt paper").mean == 86.85
    assert number(table, "Fog", "nc_ttt paper").deviation == 0.10
    difference = number(table, "Fog", "nc_ttt difference")
    assert difference.mean == pytest.approx(-6.85)
    assert difference.signed
    assert number(table, "Mean of 2", "nc_ttt paper").mean == pytest.approx((86.85 + 84.92) / 2)
    assert number(table, "Mean of 2", "nc_ttt difference").mean == pytest.approx(85 - (86.85 + 84.92) / 2)
    assert "-6.85" in render(table)


def test_over_all_fifteen_the_papers_mean_is_the_printed_one():
    (table,) = vs_paper([row("ptbn", name, 0.5, severity=4) for name in (*CORRUPTIONS, "saturate")])
    assert [len(table.lines), table.total.name] == [15, "Mean of 15"]  # the paper has no saturate
    assert number(table, "Mean of 15", "ptbn paper").mean == 74.48
    parts = [paper_accuracy("cifar10", 4, name, "ptbn") for name in CORRUPTIONS]
    assert round(sum(parts) / 15, 2) == 74.49  # of rounded numbers


def test_misprints_are_corrected_and_footnoted():
    (table,) = vs_paper([row("nc_ttt", name, 0.9, severity=2) for name in ("contrast", "fog")])
    paper = number(table, "Contrast", "nc_ttt paper")
    assert paper.mean == 93.50
    assert table.footnotes[paper.marks[0] - 1].startswith("NC-TTT, contrast: printed as 3.50")
    assert number(table, "Fog", "nc_ttt paper").marks == ()


def test_footnotes_are_only_of_what_is_shown():
    (few,) = vs_paper([row("ttt_plus", "fog", 0.9)])
    (all_of_them,) = vs_paper([row("ttt_plus", name, 0.9) for name in CORRUPTIONS])
    assert few.footnotes == ()
    assert number(all_of_them, "Mean of 15", "ttt_plus paper").marks == (1,)


def test_only_what_both_have_is_shown():
    rows = [row(method, name, 0.5) for method in ("ttt_flow", "ttt", "own") for name in ("clean", "fog")]
    (table,) = vs_paper(rows)
    assert table.columns == ("ttt", "ttt paper", "ttt difference")
    assert [line.name for line in table.lines] == ["Fog"]


def test_a_label_of_ones_own_can_be_named():
    (table,) = vs_paper([row("early layers", "fog", 0.5)], names={"early layers": "NC-TTT"})
    assert number(table, "Fog", "early layers paper").mean == 86.85


def test_severities_meet_their_own_numbers():
    first, second = vs_paper([row("tent", "fog", 0.5, severity=level) for level in (1, 5)])
    assert number(first, "Fog", "tent paper").mean == 88.05
    assert number(second, "Fog", "tent paper").mean == 75.73


def test_the_papers_lame_is_doubtful_on_cifar_but_not_on_visda():
    (table,) = vs_paper([row("lame knn", "fog", 0.5)])
    assert any("does not say which affinity" in note for note in table.notes)
    (table,) = vs_paper([row("lame knn", "clean", 0.5, data="visda-c")])
    assert number(table, "Clean", "lame knn paper").mean == 42.89
    assert len(table.notes) == 1
    assert "batches of 50" in table.notes[0]


@pytest.mark.parametrize(
    ("rows", "asked"),
    [
        ([row("nc_ttt", "fog", 0.5, data="digits")], "digits, severity 5, protocol episodic, batch size 100 (nc_ttt)"),
        ([row("ttt_flow", "fog", 0.5)], "(ttt_flow). It has cifar10-c severity 5"),
        ([row("nc_ttt", "clean", 0.5)], "no number for any of: Accuracy (%) on cifar10"),
    ],
)
def test_nothing_in_common_is_an_error_that_says_what_there_is(rows, asked):
    with pytest.raises(InputError, match=re.escape(asked)):
        vs_paper(rows)
