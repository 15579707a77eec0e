"""What a difference is worth: over seeds, and by a bootstrap of paired predictions over batches or blocks of a stream.

Images of a batch share their adaptation, and online those of neighbouring batches do, so single images are no
independent samples; batches are, or blocks of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import norm, t

from ncttt.base.errors import InputError

BLOCKS = 10  # that a stream which remembers is cut into, if it has as many batches
FEWEST = 4  # units that an interval needs
RESAMPLES = 10_000
CHUNK = 500  # resamples at a time, so that streams of single images fit the memory


class Difference(NamedTuple):
    """A difference of two accuracies with its interval, from -1 to 1 where there are too few batches for one."""

    mean: float
    low: float
    high: float

    @property
    def has_interval(self) -> bool:
        """Whether there were enough batches for an interval."""
        return self.high - self.low < 2

    def as_json(self) -> dict[str, float | None]:
        """The difference and its interval as JSON values, None for bounds that are not known."""
        low, high = (self.low, self.high) if self.has_interval else (None, None)
        return {"mean": self.mean, "low": low, "high": high}

    @property
    def significant(self) -> bool:
        """Whether the interval leaves out zero."""
        return self.low > 0 or self.high < 0


def mean_and_deviation(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean, and sample standard deviation where there are several values.

    >>> mean_and_deviation([1.0, 2.0, 3.0])
    (2.0, 1.0)
    """
    numbers = np.asarray(values, dtype=float)
    return float(numbers.mean()), float(numbers.std(ddof=1)) if len(numbers) > 1 else None


def mean_difference(differences: Sequence[Difference]) -> Difference:
    """The mean over seeds, which show the same images: as sure as one of them, no surer.

    >>> mean_difference([Difference(1.0, 0.0, 2.0), Difference(3.0, 2.0, 4.0)])
    Difference(mean=2.0, low=1.0, high=3.0)
    """
    return Difference(*(float(value) for value in np.mean(differences, axis=0)))


def paired_difference(
    first: Sequence[np.ndarray],
    second: Sequence[np.ndarray],
    batch_size: int,
    *,
    remembers: bool = False,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Difference:
    """How much more often `first` is right than `second`, on the same streams, with a bootstrap interval.

    Each is a list of streams, such as one a corruption, of bool (N,) in the same order; the streams weigh the same.
    Batches are drawn with replacement, the same ones of all streams; of a protocol that `remembers`, blocks of batches.

    >>> right = np.ones(1000, bool)
    >>> paired_difference([right], [~right], 100)
    Difference(mean=1.0, low=1.0, high=1.0)
    """
    if not first or [len(a) for a in first] != [len(b) for b in second]:
        raise InputError("a paired difference needs two lists of the same streams")
    units = [_units(one.astype(float) - other, batch_size, remembers) for one, other in zip(first, second, strict=True)]
    mean = float(np.mean([sums.sum() / counts.sum() for sums, counts in units]))
    fewest = min(len(sums) for sums, _ in units)
    if fewest < FEWEST:
        return Difference(mean, -1.0, 1.0)  # so few may agree by chance, and would seem certain
    low, high = np.quantile(_draws(units, resamples, seed), [(1 - confidence) / 2, (1 + confidence) / 2])
    # Few units vary less than they should when drawn from themselves: Student's quantile instead of the normal one.
    normal, student = norm.ppf((1 + confidence) / 2), t.ppf((1 + confidence) / 2, fewest - 1)
    wider = student / normal * (fewest / (fewest - 1)) ** 0.5
    low, high = (float(mean + wider * (bound - mean)) for bound in (low, high))
    return Difference(mean, max(-1.0, low), min(1.0, high))


def _draws(units: Sequence[tuple[np.ndarray, np.ndarray]], resamples: int, seed: int) -> np.ndarray:
    """Means of streams drawn with replacement; streams of the same length show the same images, so share the draw."""
    draws = []
    generators = {len(sums): np.random.default_rng([seed, len(sums)]) for sums, _ in units}
    for count in [CHUNK] * (resamples // CHUNK) + [resamples % CHUNK] * (resamples % CHUNK > 0):
        weights = {n: g.multinomial(n, np.full(n, 1 / n), size=count) for n, g in generators.items()}
        means = [weights[len(sums)] @ sums / (weights[len(sums)] @ counts) for sums, counts in units]
        draws.append(np.mean(means, axis=0))
    return np.concatenate(draws)


def _units(values: np.ndarray, batch_size: int, remembers: bool) -> tuple[np.ndarray, np.ndarray]:
    """Sums and sizes of what is drawn as a whole."""
    starts = np.arange(0, len(values), batch_size)
    if remembers and len(starts) > BLOCKS:
        starts = starts[[part[0] for part in np.array_split(np.arange(len(starts)), BLOCKS)]]
    return np.add.reduceat(values, starts), np.diff(starts, append=len(values)).astype(float)
