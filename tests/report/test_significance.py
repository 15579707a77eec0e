"""Two methods on the same images: the right differences, marks where they are significant, unlike streams refused."""

import csv

import numpy as np
import pytest
from report_rows import number, row

from ncttt import InputError
from ncttt.benchmark import Store, paired_difference
from ncttt.report import compare, comparison_table, render

LABELS = np.random.default_rng(0).integers(0, 10, 1000)


def right(share, seed):
    return np.random.default_rng(seed).random(1000) < share


def put(store, method, corruption, correct, labels=LABELS, **changes):
    """A row and its predictions, wrong ones by one class; two step counts, of which the last one counts."""
    predicted = np.where(correct, labels, (labels + 1) % 10)
    line = row(method, corruption, float(correct.mean()), images=len(correct), **changes)
    store.write(line, np.stack([labels, predicted]), np.stack([np.ones_like(correct), correct]))


@pytest.fixture
def filled(tmp_path):
    with Store(tmp_path / "rows.sqlite") as store:
        for n, corruption in enumerate(("clean", "snow", "gaussian_noise")):
            put(store, "nc_ttt", corruption, right(0.9 if corruption == "snow" else 0.6, n))
            put(store, "tent", corruption, right(0.6, 10 + n))
        yield store


def test_differences_are_those_of_the_paired_bootstrap(filled):
    found = compare(filled, "nc_ttt", "tent")
    assert list(found.each) == ["clean", "gaussian_noise", "snow"]
    streams = {n: (right(0.9 if n == 1 else 0.6, n), right(0.6, 10 + n)) for n in (1, 2)}
    assert found.each["snow"].difference == paired_difference([streams[1][0]], [streams[1][1]], 100)
    assert found.each["snow"].first == streams[1][0].mean()
    both = paired_difference([streams[2][0], streams[1][0]], [streams[2][1], streams[1][1]], 100)
    assert found.overall.difference == both  # without the clean images


def test_the_table_marks_what_leaves_out_zero(filled):
    found = compare(filled, "nc_ttt", "tent")
    table = comparison_table(found)
    assert table.columns == ("nc_ttt", "tent", "difference")
    snow, noise = number(table, "Snow", "difference"), number(table, "Gaussian noise", "difference")
    assert snow.star
    assert not noise.star
    assert snow.interval[0] > 0
    assert noise.interval[0] < 0 < noise.interval[1]
    assert table.total.name == "Mean of 2"
    assert snow.mean == pytest.approx(number(table, "Snow", "nc_ttt").mean - number(table, "Snow", "tent").mean)
    assert f"+{snow.mean:.2f} \\[+{snow.interval[0]:.2f}, +{snow.interval[1]:.2f}\\] \\*" in render(table)
    (*_, line) = [line for line in csv.DictReader(render(table, "csv").splitlines()) if line["Corruption"] == "Snow"]
    assert (float(line["difference low"]), float(line["difference high"])) == snow.interval
    assert "severity 5, protocol episodic, batch size 100, both on small" in table.title


def test_the_other_way_round_is_the_negative(filled):
    there, back = compare(filled, "nc_ttt", "tent"), compare(filled, "tent", "nc_ttt")
    assert back.overall.difference.mean == pytest.approx(-there.overall.difference.mean)
    assert back.first == "tent"


def test_a_stream_that_remembers_is_drawn_in_blocks(filled):
    slow = np.repeat(right(0.5, 3)[:50], 20)
    put(filled, "nc_ttt", "snow", slow, protocol="online", batch_size=10)
    put(filled, "tent", "snow", right(0.5, 4), protocol="online", batch_size=10)
    found = compare(filled, "nc_ttt", "tent", protocol="online")
    assert found.overall.difference == paired_difference([slow], [right(0.5, 4)], 10, remembers=True)
    assert found.overall.difference != paired_difference([slow], [right(0.5, 4)], 10)


def test_a_continual_stream_is_compared_by_its_parts(tmp_path):
    with Store(tmp_path / "rows.sqlite") as store:
        put(store, "nc_ttt", "fog+snow", np.repeat([True, False], 500), protocol="continual")
        put(store, "tent", "fog+snow", np.zeros(1000, bool), protocol="continual")
        found = compare(store, "nc_ttt", "tent")
    assert [(name, one.difference.mean) for name, one in found.each.items()] == [("snow", 0.0), ("fog", 1.0)]
    assert found.overall.difference.mean == 0.5


@pytest.mark.parametrize("mixed", [{"protocol": "mixed"}, {"protocol": "continual", "order": "mixed"}])
def test_a_mixed_stream_is_one_line(mixed, tmp_path):
    with Store(tmp_path / "rows.sqlite") as store:
        put(store, "nc_ttt", "fog+snow", right(0.9, 0), **mixed)
        put(store, "tent", "fog+snow", right(0.6, 1), **mixed)
        table = comparison_table(compare(store, "nc_ttt", "tent"))
    assert [line.name for line in table.all_lines] == ["2 corruptions in one stream"]


def test_only_seeds_that_all_corruptions_have_count(filled):
    for method in ("nc_ttt", "tent"):
        put(filled, method, "snow", right(0.1, 7), seed=1)
    assert compare(filled, "nc_ttt", "tent").each["snow"].first == right(0.9, 1).mean()


def test_a_second_seed_of_the_same_images_makes_nothing_surer(tmp_path):
    order = np.random.default_rng(3).permutation(1000)
    with Store(tmp_path / "rows.sqlite") as store:
        for method, share in (("nc_ttt", 0.8), ("tent", 0.6)):
            put(store, method, "snow", right(share, 1))
        one = compare(store, "nc_ttt", "tent").each["snow"].difference
        for method, share in (("nc_ttt", 0.8), ("tent", 0.6)):
            put(store, method, "snow", right(share, 1)[order], LABELS[order], seed=1)
        two = compare(store, "nc_ttt", "tent").each["snow"].difference
    assert two.mean == pytest.approx(one.mean)
    assert two.high - two.low > 0.85 * (one.high - one.low)  # if both counted as samples, it would be 0.7


def test_checkpoints_must_be_chosen_where_there_are_several(filled):
    put(filled, "tent", "snow", right(0.5, 5), checkpoint="other")
    with pytest.raises(InputError, match="one tent is compared at a time; there are: tent, small; tent, other"):
        compare(filled, "nc_ttt", "tent")
    found = compare(filled, "nc_ttt", "tent", checkpoint="small", other_checkpoint="other")
    assert list(found.each) == ["snow"]
    assert "on small and other" in found.title
    same = compare(filled, "tent", "tent", checkpoint="small", other_checkpoint="other")
    assert (same.first, same.second) == ("tent, small", "tent, other")


def test_other_images_are_noticed(filled):
    put(filled, "ttt", "snow", right(0.9, 3), labels=np.roll(LABELS, 1))
    with pytest.raises(InputError, match="nc_ttt and ttt did not see the same images of snow"):
        compare(filled, "nc_ttt", "ttt")


def test_several_severities_must_be_chosen_from(filled):
    for method in ("nc_ttt", "tent"):
        put(filled, method, "snow", right(0.5, 6), severity=3)
    with pytest.raises(InputError, match="a comparison has one severity; the rows have 3, 5: choose one"):
        compare(filled, "nc_ttt", "tent")
    assert compare(filled, "nc_ttt", "tent", severity=3).each["snow"].difference.mean == 0


def test_what_cannot_be_compared_is_refused(filled):
    with pytest.raises(InputError, match="no rows of method=nc_tt; did you mean 'nc_ttt'"):
        compare(filled, "nc_tt", "tent")
    with pytest.raises(InputError, match="asked for tent against itself"):
        compare(filled, "tent", "tent")
    with pytest.raises(InputError, match="no column 'severty'"):
        compare(filled, "nc_ttt", "tent", severty=5)
    put(filled, "ttt", "snow", right(0.5, 6), batch_size=50)
    with pytest.raises(InputError, match=r"nc_ttt and ttt have no rows in common; the same data, split, .*batch size"):
        compare(filled, "nc_ttt", "ttt")
    filled.write(row("clust3", "snow", 0.5))
    with pytest.raises(InputError, match="no predictions of clust3 on snow"):
        compare(filled, "nc_ttt", "clust3")
