"""RGB to hue, saturation, value and back, for planes (3, ...) in [0, 1]; hue in [0, 1]."""

import numpy as np

Array = np.ndarray


def rgb_to_hsv(rgb: Array) -> tuple[Array, Array, Array]:
    """Hue, saturation and value, each `(...)`; grey has hue 0.

    >>> [float(part) for part in rgb_to_hsv(np.array([0.0, 1.0, 0.0]))]
    [0.3333333333333333, 1.0, 1.0]
    """
    red, green, blue = rgb
    value = np.maximum(np.maximum(red, green), blue)
    spread = value - np.minimum(np.minimum(red, green), blue)
    safe = np.where(spread == 0, 1, spread)
    # The order settles ties as the benchmark does: the last channel that attains the maximum decides.
    sextant = np.where(
        blue == value,
        4 + (red - green) / safe,
        np.where(green == value, 2 + (blue - red) / safe, (green - blue) / safe),
    )
    hue = np.where(spread == 0, 0, sextant / 6)
    hue += hue < 0
    return hue, spread / np.where(value == 0, 1, value), value


def hsv_to_rgb(hue: Array, saturation: Array, value: Array) -> Array:
    """RGB as planes `(3, ...)`.

    >>> hsv_to_rgb(np.array(2 / 3), np.array(1.0), np.array(0.5)).tolist()
    [0.0, 0.0, 0.5]
    """
    sextant = np.floor(hue * 6)
    within = hue * 6 - sextant
    lowest = value * (1 - saturation)
    falling = value * (1 - within * saturation)
    rising = value * (1 - (1 - within) * saturation)
    sextant = sextant.astype(np.int8) % 6
    # The colour wheel, one column a sextant: which of the four values each channel takes.
    red = np.choose(sextant, (value, falling, lowest, lowest, rising, value))
    green = np.choose(sextant, (rising, value, value, falling, lowest, lowest))
    blue = np.choose(sextant, (lowest, lowest, rising, value, value, falling))
    return np.stack((red, green, blue))
