"""Poisson counts for 256 known means at once, by Walker's alias method, straight to the pixel level they end as.

A pixel has only 256 levels, so the distribution of what it becomes is a 256 x 256 table: level in, level out. The alias
method then needs one word of 32 bits and one comparison a pixel, several times faster than a general Poisson generator.
Probabilities are exact to 2^-32.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import pdtr

Array = np.ndarray
LEVELS = 256


class AliasTable(NamedTuple):
    """One distribution a row: column j, once chosen, stays with chance threshold / 2^24, else becomes its alias."""

    threshold: Array
    alias: Array

    def sample(self, levels: Array, words: Array) -> Array:
        """One draw for each of `levels` (uint8) from one of `words` (uint32): 8 bits choose a column, 24 decide."""
        column = words.astype(np.uint8)
        cell = levels.astype(np.int32)
        cell <<= 8
        cell |= column
        return np.where((words >> np.uint32(8)) < self.threshold[cell], column, self.alias[cell])


@lru_cache(maxsize=16)
def photon_table(photons: float) -> AliasTable:
    """Of Poisson(level / 255 * photons) / photons, clipped at 1 and truncated to a level."""
    return alias_table(level_probabilities(photons))


def level_probabilities(photons: float) -> Array:
    """`(256, 256)`: the chance that a pixel of level (row) becomes a level (column)."""
    counts = np.arange(int(np.ceil(photons)) + 1)
    ends_as = (np.clip(counts / photons, 0, 1) * 255).astype(int)
    means = np.arange(LEVELS) / 255 * photons
    below = pdtr(counts[None, :], means[:, None])
    below[:, -1] = 1.0  # everything from white upwards is white
    chance = np.diff(below, axis=1, prepend=0.0)
    levels = np.zeros((LEVELS, LEVELS))
    for count, level in enumerate(ends_as):
        levels[:, level] += chance[:, count]
    return levels


def alias_table(probabilities: Array) -> AliasTable:
    """Vose's construction, one step for all rows at a time: the poorest column is filled up by the richest."""
    rows, columns = probabilities.shape
    row = np.arange(rows)
    mass = probabilities * columns
    threshold = np.full((rows, columns), 2**24, np.uint32)
    alias = np.broadcast_to(np.arange(columns, dtype=np.uint8), (rows, columns)).copy()
    open_ = np.ones((rows, columns), bool)
    for _ in range(columns - 1):
        poor = np.where(open_, mass, np.inf).argmin(1)
        rich = np.where(open_, mass, -np.inf).argmax(1)
        share = np.clip(mass[row, poor], 0, 1)
        threshold[row, poor] = np.round(share * 2**24)
        alias[row, poor] = rich
        mass[row, rich] -= 1 - share
        open_[row, poor] = False
    return AliasTable(threshold.ravel(), alias.ravel())
