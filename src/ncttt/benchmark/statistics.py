"""What a difference is worth: over seeds, and by a bootstrap of paired predictions over batches or blocks of a stream.

Images of a batch share their adaptation, and online those of neighbouring batches do, so single images are no
independent samples; batches are, or blocks of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ncttt.errors import InputError

BLOCKS = 10  # that a stream which remembers is cut into
RESAMPLES = 10_000


class Difference(NamedTuple):
    """A difference of two accuracies with its interval."""

    mean: float
    low: float
    high: float

    @property
    def significant(self) -> bool:
        """Whether the interval leaves out zero."""
        return self.low > 0 or self.high < 0


def mean_and_deviation(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean, and sample standard deviation where there are several values.

    >>> mean_and_deviation([1.0, 2.0, 3.0])
    (2.0, 1.0)
    """
    found = np.asarray(values, dtype=float)
    return float(found.mean()), float(found.std(ddof=1)) if len(found) > 1 else None


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
    Batches are drawn with replacement within each stream; of a protocol that `remembers`, blocks of batches.

    >>> right = np.ones(1000, bool)
    >>> paired_difference([right], [~right], 100)
    Difference(mean=1.0, low=1.0, high=1.0)
    """
    if not first or [len(a) for a in first] != [len(b) for b in second]:
        raise InputError("a paired difference needs two lists of the same streams")
    generator = np.random.default_rng(seed)
    draws = np.zeros(resamples)
    means = []
    for one, other in zip(first, second, strict=True):
        sums, counts = _units(one.astype(float) - other, batch_size, remembers)
        weights = generator.multinomial(len(sums), np.full(len(sums), 1 / len(sums)), size=resamples)
        draws += weights @ sums / (weights @ counts)
        means.append(sums.sum() / counts.sum())
    low, high = np.quantile(draws / len(means), [(1 - confidence) / 2, (1 + confidence) / 2])
    return Difference(float(np.mean(means)), float(low), float(high))


def _units(values: np.ndarray, batch_size: int, remembers: bool) -> tuple[np.ndarray, np.ndarray]:
    """Sums and sizes of what is drawn as a whole."""
    starts = np.arange(0, len(values), batch_size)
    if remembers:
        starts = starts[:: max(1, -(-len(starts) // BLOCKS))]
    return np.add.reduceat(values, starts), np.diff(starts, append=len(values)).astype(float)
