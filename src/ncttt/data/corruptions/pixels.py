"""Ways between uint8 pixels and numbers in [0, 1], between RGB and HSV, and the gathers that warps need."""

import numpy as np

Array = np.ndarray


def unit(images: Array) -> Array:
    """uint8 as float64 in [0, 1]."""
    return images / 255.0


def truncated(values: Array) -> Array:
    """Numbers around [0, 1] as uint8: clipped, scaled and truncated (not rounded), as the benchmark does."""
    values = np.clip(values, 0, 1)
    values *= 255
    return values.astype(np.uint8)


def truncated_sums(values: Array) -> Array:
    """As `truncated`, for sums whose last bits depend on the order of adding.

    A sum meant to be a whole level (in a flat area always) may come out a hair below it; it counts as that level.
    """
    levels = np.clip(values, 0, 1)
    levels *= 255
    levels += 1e-7
    return levels.astype(np.uint8)


def rounded(levels: Array) -> Array:
    """Numbers around [0, 255] as uint8, clipped, halves up."""
    return np.clip(np.floor(levels + 0.5), 0, 255).astype(np.uint8)


def planes(images: Array) -> Array:
    """`images` (..., C) as (C, ...): numpy's inner loops are then long, not three long."""
    return np.ascontiguousarray(np.moveaxis(images, -1, 0))


def interleaved(planes: Array) -> Array:
    """`planes` (C, ...) as (..., C)."""
    return np.moveaxis(planes, 0, -1)


def symmetric(index: Array, size: int) -> Array:
    """Indices outside 0..size-1 reflected about the outer edges of the border pixels (c b a | a b c | c b a)."""
    return _folded(np.where(index < 0, -1 - index, index), 2 * size - 1, period=2 * size)


def mirrored(index: Array, size: int) -> Array:
    """Indices outside 0..size-1 reflected about the centres of the border pixels (c b | a b c | b a)."""
    return _folded(np.abs(index), 2 * size - 2, period=2 * size - 2)


def _folded(index: Array, last: int, period: int) -> Array:
    """Indices from 0 up, reflected so that `last` falls on 0."""
    if index.max(initial=0) > last:
        index = index % period
    return np.minimum(index, last - index)


def bilinear(images: Array, rows: Array, columns: Array, border=symmetric) -> Array:
    """`images` (C, N, H, W) read at `rows` and `columns`, each (N, H, W), between pixels; outside as `border` says."""
    channels, n, height, width = images.shape
    top, left = np.floor(rows), np.floor(columns)
    down, right = (rows - top).ravel(), (columns - left).ravel()
    top, left = top.astype(np.intp), left.astype(np.intp)
    first = np.arange(n)[:, None, None] * (height * width)
    upper, lower = first + border(top, height) * width, first + border(top + 1, height) * width
    left, beside = border(left, width), border(left + 1, width)
    corners = [(row + column).ravel() for row in (upper, lower) for column in (left, beside)]
    result = np.empty((channels, n * height * width))
    for channel, plane in zip(result, images.reshape(channels, -1), strict=True):
        upper_left, upper_right, lower_left, lower_right = (plane.take(corner) for corner in corners)
        above = between(upper_left, upper_right, right)
        channel[:] = between(above, between(lower_left, lower_right, right), down)
    return result.reshape(images.shape)


def between(start: Array, end: Array, share: Array) -> Array:
    """`start` moved by `share` of the way to `end`, which is overwritten."""
    end -= start
    end *= share
    end += start
    return end


def rgb_to_hsv(rgb: Array) -> tuple[Array, Array, Array]:
    """Hue, saturation and value, each `(...)` in [0, 1], of planes (3, ...) in [0, 1]; grey has hue 0.

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
