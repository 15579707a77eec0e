"""Noise of the sensor: Gaussian, shot (Poisson), impulse (salt and pepper), speckle (multiplicative)."""

import numpy as np

from ncttt.data.corruptions.pixels import Array, truncated
from ncttt.data.corruptions.poisson import photon_table
from ncttt.data.corruptions.randomness import Draws


def gaussian_noise(images: Array, draws: Draws, sigma: float) -> Array:
    noise = draws.normal(images.shape[1:])
    noise *= np.float32(sigma)
    noise += unit32(images)
    return truncated(noise)


def speckle_noise(images: Array, draws: Draws, sigma: float) -> Array:
    clean = unit32(images)
    noise = draws.normal(images.shape[1:])
    noise *= np.float32(sigma)
    noise *= clean
    noise += clean
    return truncated(noise)


def shot_noise(images: Array, draws: Draws, photons: float) -> Array:
    """Each value is a count of photons, Poisson with mean `photons` for white, divided by `photons`."""
    return photon_table(photons).sample(images, draws.words(images.shape[1:]))


def impulse_noise(images: Array, draws: Draws, share: float) -> Array:
    """A `share` of all values, channels apart, becomes 0 or 255 with equal chance."""
    words = draws.words(images.shape[1:])
    hit, salt = round(share * 2**32), round(share * 2**31)
    noisy = np.where(words < np.uint32(hit), np.uint8(0), images)
    noisy[words < np.uint32(salt)] = 255
    return noisy


def unit32(images: Array) -> Array:
    """uint8 as float32 in [0, 1]: noise hides the difference to float64, and it takes half the time."""
    return np.divide(images, np.float32(255), dtype=np.float32)
