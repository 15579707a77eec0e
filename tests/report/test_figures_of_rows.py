"""The figures of rows and of trials: every number that is drawn is one of theirs, and what is missing is said."""

import json

import numpy as np
import pytest
from figure_data import COUNTS, accuracy_at, rows_of_a_benchmark, trials, whole_row
from figure_pages import page
from matplotlib.text import Text
from scipy.stats import spearmanr

from ncttt.base.errors import InputError
from ncttt.data.corruptions import CORRUPTIONS
from ncttt.report.figures import draw_attribution, draw_iterations, draw_layers, draw_shift
from ncttt.report.figures.gallery import draw
from ncttt.report.figures.iterations import curves_of
from ncttt.report.figures.shared.request import Request
from ncttt.report.figures.shared.selection import rows_where
from ncttt.report.figures.shift import Point, points_of, verdict
from ncttt.report.names import spelled
from ncttt.report.shares import shares_of_rows


def test_iterations_draw_the_mean_over_seeds_of_each_corruption():
    panels = {axes.get_title(loc="left").split("\n")[0]: axes for axes in page("iterations").axes}
    assert list(panels) == ["Clean", *map(spelled, CORRUPTIONS), "Mean of 15"]
    for number, name in enumerate(["Clean", *map(spelled, CORRUPTIONS)]):
        counts, accuracies = panels[name].lines[0].get_data()
        assert tuple(counts) == COUNTS
        expected = [50 * (accuracy_at(number, 0)[str(n)] + accuracy_at(number, 1)[str(n)]) for n in COUNTS]
        assert accuracies == pytest.approx(expected)
    each = [panels[spelled(name)].lines[0].get_ydata() for name in CORRUPTIONS]
    assert panels["Mean of 15"].lines[0].get_ydata() == pytest.approx(np.mean(each, axis=0))


def test_iterations_mark_the_highest_accuracy_and_where_the_stop_rule_ends():
    axes = page("iterations").axes[3]
    line, highest, stop = axes.lines
    best = int(np.argmax(line.get_ydata()))
    assert (highest.get_xdata()[0], highest.get_ydata()[0]) == (line.get_xdata()[best], line.get_ydata()[best])
    assert axes.get_title(loc="left").endswith(f"{line.get_ydata()[best]:.1f} % after {COUNTS[best]}")
    assert stop.get_xdata()[0] == 7.0
    assert stop.get_ydata()[0] == pytest.approx(50 * (accuracy_at(3, 0)["0"] + accuracy_at(3, 1)["0"]) + 2)


def test_iterations_show_one_span_in_every_panel():
    spans = [np.ptp(axes.get_ylim()) for axes in page("iterations").axes]
    assert spans == pytest.approx([spans[0]] * len(spans))
    for axes in page("iterations").axes:
        low, high = axes.get_ylim()
        assert all(low < value < high for line in axes.lines for value in line.get_ydata())


def test_no_number_is_above_a_hundred():
    rows = rows_of_a_benchmark(["fog", "snow"])
    for row in rows:
        if row["accuracy_at"]:  # snow is flat, in a panel of the span that fog needs
            counts = list(json.loads(row["accuracy_at"]))
            rising = [0.2 + 0.6 * place / max(1, len(counts) - 1) for place in range(len(counts))]
            values = rising if row["corruption"] == "fog" else [0.9] * len(counts)
            row["accuracy_at"] = json.dumps(dict(zip(counts, values, strict=True)))
    for axes in draw_iterations(rows).axes:
        low, high = axes.get_ylim()
        assert max(tick for tick in axes.get_yticks() if low <= tick <= high) <= 100
        assert all(low < value < high for line in axes.lines for value in line.get_ydata())


def test_without_rows_that_stop_nothing_is_marked():
    rows = [row for row in rows_of_a_benchmark(["fog", "snow"]) if row["stop"] is None]
    assert all(curve.stop is None for curve in curves_of(rows, "nc_ttt"))
    assert all(len(axes.lines) == 2 for axes in draw_iterations(rows).axes)


@pytest.mark.parametrize(
    ("changes", "method", "message"),
    [
        ({}, "tent", "no row of 'tent' has the accuracy after several counts"),
        ({}, "nc_tt", "no rows of 'nc_tt'; did you mean 'nc_ttt'"),
        ({"severity": 3}, "nc_ttt", "one severity, but the rows have 5 and 3; choose by --where.severity"),
        ({"checkpoint": "other"}, "nc_ttt", "one checkpoint, but the rows have small and other"),
    ],
)
def test_what_iterations_cannot_be_drawn_from_is_said(changes, method, message):
    more = whole_row("nc_ttt", "fog", 0.5, 0, norm="batch", columns={"accuracy_at": '{"0": 0.4, "1": 0.5}', **changes})
    with pytest.raises(InputError) as caught:
        draw_iterations([*rows_of_a_benchmark(["fog", "snow"]), *([more] if changes else [])], method)
    assert message in str(caught.value)


def test_attribution_draws_the_shares():
    (axes,) = page("attribution").axes
    found = shares_of_rows(rows_of_a_benchmark())
    assert [label.get_text() for label in axes.get_yticklabels()] == ["TENT", "NC-TTT", "NC-TTT that stops"]
    widths = [[bar.get_width() for bar in bars] for bars in axes.containers]
    assert widths[0] == pytest.approx([share.statistics for share in found])
    assert widths[1] == pytest.approx([share.steps for share in found])
    assert widths[2] == pytest.approx([share.adapted - share.source for share in found])
    written = [text.get_text() for text in axes.texts]
    assert written == [f"{width:+.2f}" for part in widths for width in part]
    assert "15 corruptions" in axes.get_title(loc="left")


def test_attribution_needs_what_it_compares():
    rows = [row for row in rows_of_a_benchmark(["fog"]) if row["method"] != "ptbn"]
    with pytest.raises(InputError, match="rows of `source`, of `ptbn` and of a method"):
        draw_attribution(rows)


def test_shift_draws_scores_and_errors_with_their_rank_correlation():
    rows = rows_of_a_benchmark()
    for axes, still in zip(page("shift").axes, ("source", "ptbn"), strict=True):
        drawn = np.concatenate([np.asarray(cloud.get_offsets()) for cloud in axes.collections])
        expected = {
            name: (
                np.mean([r["shift_before"] for r in rows if r["corruption"] == name and r["method"] == "nc_ttt"]),
                100 * np.mean([1 - r["accuracy"] for r in rows if r["corruption"] == name and r["method"] == still]),
            )
            for name in {row["corruption"] for row in rows}
        }
        assert sorted(map(tuple, drawn)) == pytest.approx(np.array(sorted(expected.values())))
        rank = spearmanr(*np.array(list(expected.values())).T).statistic
        assert f"{abs(rank):.2f}" in axes.get_title(loc="left")


def test_the_verdict_claims_no_more_than_there_is():
    errors = [3.0, 1.0, 4.0, 1.5, 5.0, 9.0, 2.0, 6.0]
    orderly = [Point("fog", 5, 1 - error / 10, error) for error in errors]
    assert verdict(orderly).startswith("rank correlation \N{MINUS SIGN}1.00, p < 0.001, 8 sets")
    unrelated = [Point("fog", 5, score, error) for score, error in zip((1, 2, 3, 4, 5, 6, 7, 8), errors, strict=True)]
    assert verdict(unrelated).endswith("nothing shown")
    assert "never changes" in verdict([Point("fog", 5, 0.5, error) for error in errors])
    assert "too few" in verdict(orderly[:3])


def test_shift_needs_a_score_and_an_error():
    rows = rows_of_a_benchmark(["fog", "snow"])
    with pytest.raises(InputError, match="no row of 'tent' has a shift score"):
        draw_shift(rows, "tent")
    with pytest.raises(InputError, match="measure `source` on the same checkpoint"):
        draw_shift([row for row in rows if row["method"] == "nc_ttt"])
    others = [row | {"weights": "others"} if row["method"] == "source" else row for row in rows]
    assert points_of(others, "nc_ttt", "source") == []


def test_layers_draw_the_best_trial_of_each_pair():
    accuracy, gain = page("layers").axes
    best = {}
    for trial in trials():
        pair = trial["settings"]["layer"], trial["settings"]["method_settings.sigma_out"]
        best[pair] = max(best.get(pair, trial), trial, key=lambda one: one["accuracy"])
    order = [best[f"layer{layer}", sigma] for layer in (1, 2, 3, 4) for sigma in (0.01, 0.015, 0.025, 0.05)]
    assert np.asarray(accuracy.images[0].get_array()).ravel() == pytest.approx(
        [100 * trial["accuracy"] for trial in order]
    )
    assert [text.get_text() for text in accuracy.texts] == [f"{100 * trial['accuracy']:.1f}" for trial in order]
    for text, trial in zip(gain.texts, order, strict=True):
        mean, low, high = (100 * trial["gain"][name] for name in ("mean", "low", "high"))
        assert text.get_text() == f"{mean:+.2f}" + (" *" if low > 0 or high < 0 else "")
    assert {text.get_text()[-1] == "*" for text in gain.texts} == {True, False}
    assert [label.get_text() for label in accuracy.get_xticklabels()] == ["0.01", "0.015", "0.025", "0.05"]


def test_a_pair_that_was_not_tried_stays_empty():
    figure = draw_layers(trials()[2:])
    assert [axes.texts[0].get_text() for axes in figure.axes] == ["", ""]


def test_scales_that_are_tied_are_one_scale_and_seeds_are_averaged():
    tied = [
        {
            **trial,
            "accuracy": trial["accuracy"] + 0.01 * seed,
            "settings": {
                "layer": trial["settings"]["layer"],
                "method_settings.sigma_in": trial["settings"]["method_settings.sigma_out"],
                "method_settings.sigma_out": 2 * trial["settings"]["method_settings.sigma_out"],
                "recipe.seed": seed,
            },
        }
        for trial in trials()[::2]
        for seed in (0, 1, 2)
    ]
    accuracy, gain = draw_layers(tied).axes
    once = [100 * (trial["accuracy"] + 0.01) for trial in trials()[::2]]
    assert np.asarray(accuracy.images[0].get_array()).ravel() == pytest.approx(once)
    assert not any(text.get_text().endswith("*") for text in gain.texts)


def test_an_exception_is_printed_below_the_figure(tmp_path):
    (tmp_path / "trials.json").write_text(json.dumps({"exception": "on target images", "trials": trials()}))
    request = Request(trials=str(tmp_path / "trials.json"))
    texts = [text.get_text() for text in draw("layers", request).findobj(Text)]
    assert "Exception: on target images." in texts


def test_passes_without_a_gradient_stand_beside_iterations_that_move_statistics():
    norm = {"norm": "running(0.1, 1)"}
    curve = json.dumps({"0": 0.5, "5": 0.6, "20": 0.7})
    rows = [whole_row("nc_ttt", name, 0.7, 0, **norm, columns={"accuracy_at": curve}) for name in ("fog", "snow")]
    rows += [whole_row("source", name, 0.5, 0) for name in ("fog", "snow")]
    rows += [whole_row("ptbn", name, 0.9, 0, norm="batch") for name in ("fog", "snow")]
    for count, accuracy in ((5, 0.59), (20, 0.71)):
        rows += [whole_row("ptbn", name, accuracy, 0, norm=f"running(0.1, {count})") for name in ("fog", "snow")]
    for one in curves_of(rows, "nc_ttt"):
        assert dict(one.still) == pytest.approx({0: 50.0, 5: 59.0, 20: 71.0})
    assert any(line.get_label() == "without gradient" for line in draw_iterations(rows).axes[0].lines)
    moved = [row | {"settings": row["settings"].replace("running(0.1, 1)", "batch")} for row in rows]
    assert all(one.still == () for one in curves_of(moved, "nc_ttt"))


def test_a_search_over_something_else_is_refused():
    other = [json.loads(json.dumps(trial).replace("sigma_out", "views")) for trial in trials()]
    with pytest.raises(InputError, match=r"must vary layer and one of .*; found layer, method_settings.views, lr"):
        draw_layers(other)


def test_rows_are_chosen_by_columns_that_exist():
    rows = rows_of_a_benchmark(["fog"])
    assert {row["method"] for row in rows_where(rows, {"method": ["tent", "ptbn"], "seed": 1})} == {"tent", "ptbn"}
    with pytest.raises(InputError, match="no column 'severty'; did you mean 'severity'"):
        rows_where(rows, {"severty": 5})
    with pytest.raises(InputError, match="none of 10 rows has severity=4"):
        rows_where(rows, {"severity": 4})
