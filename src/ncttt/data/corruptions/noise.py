"""Noise of the sensor: Gaussian, shot (Poisson), impulse (salt and pepper), speckle (multiplicative)."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import pdtr

from ncttt.data.corruptions.pixels import Array, truncated
from ncttt.data.corruptions.randomness import Draws
from ncttt.data.corruptions.registry import corruption

LEVELS = 256


@corruption(
    cifar=((0.04,), (0.06,), (0.08,), (0.09,), (0.10,)),
    imagenet=((0.08,), (0.12,), (0.18,), (0.26,), (0.38,)),
)
def gaussian_noise(images: Array, draws: Draws, sigma: float) -> Array:
    noise = draws.normal(images.shape[1:])
    noise *= np.float32(sigma)
    noise += unit32(images)
    return truncated(noise)


@corruption(
    cifar=((500,), (250,), (100,), (75,), (50,)),
    imagenet=((60,), (25,), (12,), (5,), (3,)),
)
def shot_noise(images: Array, draws: Draws, photons: float) -> Array:
    """Each value is a count of photons, Poisson with mean `photons` for white, divided by `photons`."""
    return photon_table(photons).sample(images, draws.words(images.shape[1:]))


@corruption(
    cifar=((0.01,), (0.02,), (0.03,), (0.05,), (0.07,)),
    imagenet=((0.03,), (0.06,), (0.09,), (0.17,), (0.27,)),
)
def impulse_noise(images: Array, draws: Draws, share: float) -> Array:
    """A `share` of all values, channels apart, becomes 0 or 255 with equal chance."""
    words = draws.words(images.shape[1:])
    hit, salt = round(share * 2**32), round(share * 2**31)
    noisy = np.where(words < np.uint32(hit), np.uint8(0), images)
    noisy[words < np.uint32(salt)] = 255
    return noisy


@corruption(
    cifar=((0.06,), (0.1,), (0.12,), (0.16,), (0.2,)),
    imagenet=((0.15,), (0.2,), (0.35,), (0.45,), (0.6,)),
    extra=True,
)
def speckle_noise(images: Array, draws: Draws, sigma: float) -> Array:
    clean = unit32(images)
    noise = draws.normal(images.shape[1:])
    noise *= np.float32(sigma)
    noise *= clean
    noise += clean
    return truncated(noise)


def unit32(images: Array) -> Array:
    """uint8 as float32 in [0, 1]: noise hides the difference to float64, and it takes half the time."""
    return np.divide(images, np.float32(255), dtype=np.float32)


class AliasTable(NamedTuple):
    """One distribution a row: column j, once chosen, stays with chance threshold / 2^24, else becomes its alias.

    A pixel has only 256 levels, so the distribution of what shot noise makes of it is a 256 x 256 table: level in,
    level out. Walker's alias method then needs one word of 32 bits and one comparison a pixel, several times faster
    than a general Poisson generator. Probabilities are exact to 2^-32.
    """

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
