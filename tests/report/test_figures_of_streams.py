"""The figures of streams: accuracy along them, and accuracy against batch size."""

import json

import numpy as np
import pytest
from figure_data import batch_size_rows, right_of, stream_rows
from figure_pages import page

from ncttt.base.errors import InputError
from ncttt.benchmark import Store, run_grid
from ncttt.benchmark.entries import Entry
from ncttt.benchmark.grid import Grid
from ncttt.cli import main
from ncttt.data.corruptions import CORRUPTIONS
from ncttt.report.figures import draw_batch_sizes, draw_stream
from ncttt.report.figures.batch_sizes import curves_of
from ncttt.report.figures.shared.methods import MOST
from ncttt.report.figures.stream import moving_mean, right_images, tracks_of
from ncttt.report.names import short_corruptions


def legend_of(figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_a_moving_mean_is_that_of_the_images_around():
    values, places = np.random.default_rng(0).random(50), np.arange(50)
    slow = [values[max(0, place - 4) : place + 6].mean() for place in places]
    assert moving_mean(values, 10, places) == pytest.approx(slow)
    assert moving_mean(values, 1, places) == pytest.approx(values)
    assert moving_mean(values, 1000, places) == pytest.approx([values.mean()] * 50)


def test_a_moving_mean_does_not_reach_into_the_next_domain():
    rows = stream_rows(corruptions=("fog", "snow"), domains=2)[:2]
    right = {row["key"]: np.repeat([True, False], 40) for row in rows}
    heights = draw_stream(rows, right, window=20).axes[0].lines[0].get_ydata()
    gap = int(np.flatnonzero(np.isnan(heights))[0])
    assert set(heights[:gap]) == {100.0}
    assert set(heights[gap + 1 :]) == {0.0}


def test_names_stand_over_the_domains_and_lines_between_them():
    axes = page("stream").axes[0]
    names = [*short_corruptions(CORRUPTIONS).values()] * 2
    places = {text.get_text(): [] for text in axes.texts}
    for text in axes.texts:
        places[text.get_text()].append(text.get_position()[0])
    assert [text.get_text() for text in axes.texts] == names
    assert places["Fog"] == [40 * (9 + 0.5), 40 * (24 + 0.5)]
    borders = [line.get_xdata()[0] for line in axes.lines[MOST:]]
    assert borders == [40 * number for number in range(1, 30)]
    assert "visits(2), batches of 64" in axes.get_title(loc="left")


def test_severities_of_one_corruption_are_one_stretch():
    rows = stream_rows("random+gradual", corruptions=("fog", "snow"), domains=18)
    axes = draw_stream(rows, right_of(rows)).axes[0]
    assert [text.get_text() for text in axes.texts] == ["Fog", "Snow"]
    assert [line.get_xdata()[0] for line in axes.lines[MOST:]] == [40 * 9]


def test_of_many_methods_the_best_are_shown_and_the_others_named():
    for name in ("stream", "batch_sizes"):
        figure = page(name)
        shown = [text.split()[0] for text in legend_of(figure)]
        assert len(shown) == MOST
        assert {"Source", "PTBN", "NC-TTT", "TTT"} <= set(shown)
        left_out = figure.legends[0].get_title().get_text()
        assert left_out.startswith("Left out, less accurate: ")
        assert {"TENT", "EATA", "RDumb"} == {one.split()[0] for one in left_out.split(": ")[1].split(", ")}
    few = stream_rows()[:4]
    figure = draw_stream(few, right_of(few))
    assert len(legend_of(figure)) == 4
    assert figure.legends[0].get_title().get_text() in ("", "None")


def test_the_legend_has_the_accuracy_of_the_whole_stream():
    rows = stream_rows()[:3]
    right = right_of(rows)
    assert legend_of(draw_stream(rows, right)) == [
        f"{name} {100 * right[row['key']].mean():.1f} %"
        for name, row in zip(("Source", "PTBN", "TENT"), rows, strict=True)
    ]


def test_without_predictions_each_domain_has_its_mean():
    rows = stream_rows()
    track = next(iter(tracks_of(rows, {}).values()))
    told = json.loads(rows[0]["accuracy_of_parts"])
    assert [float(part.mean()) for part in track.right] == pytest.approx([told[name] for name in CORRUPTIONS])
    assert "mean of each domain" in draw_stream(rows, {}).axes[0].get_xlabel()
    again = stream_rows("random+visits(2)", domains=30)
    with pytest.raises(InputError, match=r"no accuracy for each of its 30 domains .*give the store of `ncttt bench`"):
        draw_stream(again, {})


def test_predictions_of_some_rows_alone_are_not_mixed_with_means():
    rows = stream_rows()
    some = dict(list(right_of(rows).items())[1:])
    assert not next(iter(tracks_of(rows, some).values())).each


def test_seeds_are_averaged_and_single_corruptions_follow_one_another():
    long = stream_rows(corruptions=("fog",), domains=1)[:1]
    single = [
        row | {"key": f"{name} {seed}", "corruption": name, "seed": seed}
        for row in long
        for name in ("snow", "fog")
        for seed in (0, 1)
    ]
    right = {f"{name} {seed}": np.full(40, name == "fog" or seed == 1) for name in ("snow", "fog") for seed in (0, 1)}
    (track,) = tracks_of(single, right).values()
    assert [name for name, _ in track.domains] == ["snow", "fog"]
    assert [set(part) for part in track.right] == [{0.5}, {1.0}]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (stream_rows(batch_size=16), "one batch size, but the rows have 64 and 16; choose by --where.batch_size"),
        (stream_rows("dirichlet(0.1)"), "one order, but the rows have random and dirichlet"),
        (stream_rows(corruptions=("fog", "snow"), domains=2), "one stream, but the rows go through"),
    ],
)
def test_a_figure_shows_one_stream(more, message):
    with pytest.raises(InputError) as caught:
        draw_stream([*stream_rows(), *more], {})
    assert message in str(caught.value)


def test_a_window_of_no_image_is_refused():
    rows = stream_rows()
    with pytest.raises(InputError, match="a window of 1 image or more; found 0"):
        draw_stream(rows, right_of(rows), window=0)


def test_batch_sizes_have_a_panel_for_each_kind_of_stream_and_a_flat_source():
    rows = batch_size_rows()
    figure = page("batch_sizes")
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["random", "dirichlet(0.1)", "visits(2)"]
    for axes, order in zip(figure.axes, ("random", "dirichlet(0.1)", "random+visits(2)"), strict=True):
        lines = {line.get_label(): line for line in axes.lines}
        own = {
            row["batch_size"]: 100 * row["accuracy"] for row in rows if (row["method"], row["order"]) == ("ttt", order)
        }
        assert dict(zip(*lines["TTT"].get_data(), strict=True)) == pytest.approx(own)
        source = [100 * row["accuracy"] for row in rows if (row["method"], row["order"]) == ("source", order)]
        assert lines["Source"].get_ydata() == pytest.approx([np.mean(source)] * 2)
        assert axes.get_xscale() == "log"


def test_a_batch_size_that_lacks_a_seed_is_not_drawn():
    rows = [row | {"key": f"{row['key']} {seed}", "seed": seed} for seed in (0, 1) for row in batch_size_rows()]
    rows = [row for row in rows if (row["method"], row["batch_size"], row["seed"]) != ("tent", 4, 1)]
    curves = {column.label: curve for column, curve in curves_of(rows)["random"].items()}
    assert list(curves["tent"]) == [1, 16, 64, 128]
    assert list(curves["roid"]) == [1, 4, 16, 64, 128]


def test_one_batch_size_is_nothing_to_compare():
    with pytest.raises(InputError, match=r"compares batch sizes, and the rows have one; measure more by `ncttt bench`"):
        draw_batch_sizes(stream_rows())
    with pytest.raises(InputError, match="one severity, but the rows have 5 and 3"):
        draw_batch_sizes([*batch_size_rows(), *(row | {"severity": 3} for row in batch_size_rows())])


@pytest.fixture(scope="module")
def measured(checkpoint, tmp_path_factory) -> str:
    """Streams of digits in a store, and its CSV beside it."""
    path = tmp_path_factory.mktemp("streams") / "rows.sqlite"
    entries = [Entry(method=name, checkpoint=checkpoint) for name in ("source", "ptbn", "tent")]
    streams = {"protocols": ["continual"], "sequences": ["once", "visits(2)"], "batch_sizes": [5, 20]}
    shifts = {"corruptions": ["fog", "contrast"], "images": 40, "constants": "imagenet"}
    with Store(path) as store:
        run_grid(Grid(data="digits", methods=entries, **shifts, **streams), store, executor="here")
        store.export(path.with_suffix(".csv"))
    return str(path)


def test_figures_of_a_measured_stream(measured, tmp_path, capsys):
    arguments = ["figures", "stream", "--out", str(tmp_path), "--where.batch_size", "5"]
    again, once = ["--where.order", "random+visits(2)"], ["--where.order", "random"]
    assert main([*arguments, "--rows", measured, *again, "--window", "10"]) == 0
    assert main(["figures", "batch_sizes", "--rows", measured, "--out", str(tmp_path)]) == 0
    assert len(list(tmp_path.iterdir())) == 4
    csv = measured.replace(".sqlite", ".csv")
    assert main([*arguments, "--rows", csv, *once]) == 0
    capsys.readouterr()
    assert main([*arguments, "--rows", csv, *again]) == 2
    assert "give the store of `ncttt bench`" in capsys.readouterr().err


def test_the_domains_of_a_measured_stream_are_where_its_row_says(measured):
    with Store(measured, read_only=True) as store:
        rows = store.rows(order="random", batch_size=5)
    tracks = tracks_of(rows, right_images(measured, rows))
    for row, track in zip(rows, tracks.values(), strict=True):
        told = json.loads(row["accuracy_of_parts"])
        assert {name: float(part.mean()) for (name, _), part in zip(track.domains, track.right, strict=True)} == (
            pytest.approx(told)
        )
        assert track.accuracy == pytest.approx(100 * row["accuracy"])
