"""Intervals that hold what they promise."""

import numpy as np
import pytest

from ncttt import InputError
from ncttt.benchmark.intervals import mean_and_deviation, mean_difference, paired_difference


def pair(generator, batches=40, size=50, shift=0.1):
    """Two methods whose images share the luck of their batch; the first is better by `shift` on average."""
    luck = np.repeat(generator.normal(0, 0.1, batches), size)
    first = generator.random(batches * size) < 0.6 + shift + luck
    return first, generator.random(batches * size) < 0.6


def test_the_mean_is_the_plain_difference_of_accuracies():
    first, second = pair(np.random.default_rng(0))
    difference = paired_difference([first], [second], 50)
    assert difference.mean == pytest.approx(first.mean() - second.mean())
    assert difference.low < difference.mean < difference.high


def test_intervals_cover_the_truth_as_often_as_they_promise():
    generator = np.random.default_rng(1)
    differences = [paired_difference([a], [b], 50, resamples=400) for a, b in (pair(generator) for _ in range(200))]
    covered = np.mean([result.low <= 0.1 <= result.high for result in differences])
    assert 0.89 <= covered <= 0.98
    naive = [paired_difference([a], [b], 1, resamples=400) for a, b in (pair(generator) for _ in range(100))]
    assert (
        np.mean([result.low <= 0.1 <= result.high for result in naive]) < covered - 0.05
    )  # single images promise too much


def test_streams_weigh_the_same_whatever_their_length():
    right = [np.ones(100, bool), np.zeros(300, bool)]
    wrong = [np.zeros(100, bool), np.zeros(300, bool)]
    assert paired_difference(right, wrong, 10) == (0.5, 0.5, 0.5)


def test_a_stream_that_remembers_is_drawn_in_blocks():
    generator = np.random.default_rng(2)
    slow = np.repeat(generator.random(20) < 0.5, 100)  # what is right changes every second batch only
    batches = paired_difference([slow], [np.zeros(2000, bool)], 50)
    blocks = paired_difference([slow], [np.zeros(2000, bool)], 50, remembers=True)
    assert blocks.high - blocks.low > 1.1 * (batches.high - batches.low)


@pytest.mark.parametrize("batches", [4, 8])
def test_intervals_of_few_batches_are_wide_enough(batches):
    generator = np.random.default_rng(3)
    differences = [
        paired_difference([a], [b], 50, resamples=400) for a, b in (pair(generator, batches) for _ in range(200))
    ]
    assert np.mean([result.low <= 0.1 <= result.high for result in differences]) > 0.9


@pytest.mark.parametrize("batches", [1, 2, 3])
def test_very_few_batches_tell_nothing_about_others(batches):
    right = np.ones(50 * batches, bool)
    assert paired_difference([right] * 15, [~right] * 15, 50) == (1.0, -1.0, 1.0)  # however well they agree


def test_streams_of_the_same_images_are_drawn_together():
    first, second = pair(np.random.default_rng(4))
    one = paired_difference([first], [second], 50)
    assert paired_difference([first] * 9, [second] * 9, 50) == pytest.approx(
        one
    )  # nine times the same is known as once


def test_seeds_that_show_the_same_images_make_nothing_surer():
    first, second = pair(np.random.default_rng(5))
    other = np.random.default_rng(6).permutation(len(first))
    one, two = (paired_difference([first[order]], [second[order]], 50) for order in (slice(None), other))
    both = mean_difference([one, two])
    assert both.mean == pytest.approx(one.mean)
    assert both.high - both.low >= min(one.high - one.low, two.high - two.low)


@pytest.mark.parametrize("batches", [3, 10, 11, 16, 95])
def test_a_stream_that_remembers_has_at_most_ten_blocks_of_whole_batches(batches):
    from ncttt.benchmark.intervals import _units

    sums, counts = _units(np.ones(batches * 7 - 3), 7, remembers=True)
    assert len(counts) == min(10, batches)
    assert sums.tolist() == counts.tolist()
    assert counts.sum() == batches * 7 - 3
    assert all(count % 7 == 0 for count in counts[:-1])
    assert max(counts[:-1], default=0) - min(counts[:-1], default=0) <= 7


def test_significance_and_bad_pairs():
    right = np.ones(100, bool)
    assert paired_difference([right], [~right], 10).significant
    assert not paired_difference([right], [right], 10).significant
    with pytest.raises(InputError, match="two lists of the same streams"):
        paired_difference([right], [right[:50]], 10)
    with pytest.raises(InputError, match="two lists of the same streams"):
        paired_difference([], [], 10)


def test_deviation_over_seeds_is_that_of_a_sample():
    assert mean_and_deviation([2.0]) == (2.0, None)
    mean, deviation = mean_and_deviation([1.0, 3.0])
    assert (mean, deviation) == (2.0, pytest.approx(2**0.5))
