"""Slow, obviously right corruptions of ONE image, written from the definitions: loops, scipy.ndimage, Pillow.

Each takes the image (H, W, 3) uint8, the constants of its severity, and a function `draw(kind, *arguments)` that gives
this image's random numbers in the order in which the definition asks for them.
"""

from io import BytesIO
from math import ceil, cos, exp, floor, hypot, radians, sin

import numpy as np
from PIL import Image
from scipy import ndimage

HAIR = 1e-7


def to_levels(values, hair=0.0):
    return np.floor(np.clip(values, 0, 1) * 255 + hair).astype(np.uint8)


def clamp(index, size):
    return min(max(index, 0), size - 1)


def gaussian_noise(image, draw, sigma):
    return to_levels(image / 255 + sigma * draw("normal", image.shape))


def speckle_noise(image, draw, sigma):
    clean = image / 255
    return to_levels(clean + clean * sigma * draw("normal", image.shape))


def impulse_noise(image, draw, share):
    chance = draw("words", image.shape) / 2**32
    noisy = image.copy()
    noisy[chance < share] = 0
    noisy[chance < share / 2] = 255
    return noisy


def gaussian_blur(image, draw, sigma):
    return to_levels(smoothed(image / 255, sigma))


def smoothed(image, sigma):
    """Weights exp(-d^2 / 2 sigma^2) out to four sigma, the outermost pixels repeated.

    Added as scipy does, to the last bit: the centre, then pairs of equal distance from the outermost inwards.
    """
    reach = int(4 * sigma + 0.5)
    weights = np.exp(-0.5 / sigma**2 * np.arange(-reach, reach + 1) ** 2)
    weights /= weights.sum()
    for axis in (0, 1):
        margins = [(reach, reach) if a == axis else (0, 0) for a in range(image.ndim)]
        padded, size = np.pad(image, margins, mode="edge"), image.shape[axis]
        shifted = [padded.take(range(k, k + size), axis=axis) for k in range(2 * reach + 1)]
        image = weights[reach] * shifted[reach]
        for k in range(reach):
            image = image + weights[k] * (shifted[k] + shifted[-1 - k])
    return image


def disk_kernel(radius, alias_blur):
    half, reach = (8, 1) if radius <= 8 else (int(radius), 2)
    side = 2 * half + 1
    disk = np.zeros((side, side))
    for y in range(side):
        for x in range(side):
            disk[y, x] = hypot(y - half, x - half) <= radius
    disk /= disk.sum()
    weights = np.array([exp(-(d**2) / (2 * alias_blur**2)) for d in range(-reach, reach + 1)])
    weights /= weights.sum()
    padded = np.pad(disk, reach, mode="reflect")
    blurred = np.zeros_like(disk)
    for dy, wy in enumerate(weights):
        for dx, wx in enumerate(weights):
            blurred += wy * wx * padded[dy : dy + side, dx : dx + side]
    return blurred


def defocus_blur(image, draw, radius, alias_blur):
    kernel = disk_kernel(radius, alias_blur)
    channels = [ndimage.correlate(image[..., c] / 255, kernel, mode="mirror") for c in range(3)]
    return to_levels(np.stack(channels, axis=-1), HAIR)


def glass_blur(image, draw, sigma, reach, times):
    height, width = image.shape[:2]
    image = to_levels(ndimage.gaussian_filter(image / 255, (sigma, sigma, 0), mode="nearest"))
    shifts = draw("integers", -reach, reach, (times, height - 2 * reach, width - 2 * reach, 2))
    for time in range(times):
        for a, h in enumerate(range(height - reach, reach, -1)):
            for b, w in enumerate(range(width - reach, reach, -1)):
                dx, dy = shifts[time, a, b]
                image[h, w] = image[h + dy, w + dx]
    return to_levels(ndimage.gaussian_filter(image / 255, (sigma, sigma, 0), mode="nearest"))


def moved(image, angle, radius, sigma):
    """ImageMagick's motion blur of an image (H, W, C) uint8, pixel by pixel and step by step."""
    height, width = image.shape[:2]
    steps = 2 * ceil(radius) + 1
    weights = [exp(-(i**2) / (2 * sigma**2)) for i in range(steps)]
    total = np.zeros(image.shape)
    for i, weight in enumerate(weights):
        down, right = ceil(i * sin(radians(angle)) - 0.5), ceil(i * cos(radians(angle)) - 0.5)
        for y in range(height):
            for x in range(width):
                total[y, x] += weight / sum(weights) * image[clamp(y + down, height), clamp(x + right, width)]
    return np.floor(total + 0.5).astype(np.uint8)


def motion_blur(image, draw, radius, sigma):
    return moved(image, draw("uniform", -45, 45), radius, sigma)


def enlarged(image, factor):
    """Cropped about the centre, stretched by scipy, trimmed; each axis for itself."""
    crops = [ceil(size / factor) for size in image.shape[:2]]
    tops = [(size - crop) // 2 for size, crop in zip(image.shape[:2], crops, strict=True)]
    part = image[tops[0] : tops[0] + crops[0], tops[1] : tops[1] + crops[1]]
    big = ndimage.zoom(part, (factor, factor, *(1,) * (image.ndim - 2)), order=1)
    trims = [(b - s) // 2 for b, s in zip(big.shape[:2], image.shape[:2], strict=True)]
    return big[trims[0] : trims[0] + image.shape[0], trims[1] : trims[1] + image.shape[1]]


def zoom_blur(image, draw, stop, step):
    factors = np.arange(1, stop, step)
    total = image / 255 + sum(enlarged(image / 255, factor) for factor in factors)
    return to_levels(total / (len(factors) + 1), HAIR)


def snow(image, draw, mean, std, zoom, threshold, radius, sigma, keep):
    flakes = draw("normal", image.shape[:2]) * std + mean
    flakes = enlarged(flakes, zoom)
    flakes[flakes < threshold] = 0
    flakes = moved(to_levels(flakes)[..., None], draw("uniform", -135, -45), radius, sigma) / 255
    scene = image / 255
    grey = (scene @ [0.299, 0.587, 0.114])[..., None]
    scene = keep * scene + (1 - keep) * np.maximum(scene, grey * 1.5 + 0.5)
    return to_levels(scene + flakes + np.rot90(flakes, k=2))


def frost(image, draw, keep, amount, textures):
    height, width = image.shape[:2]
    texture = textures[int(draw("integers", 0, len(textures)))]
    down, right = draw("uniform", 0, 1, (2,))
    top, left = int(down * (texture.shape[0] - height)), int(right * (texture.shape[1] - width))
    crop = texture[top : top + height, left : left + width]
    return np.clip(keep * image + amount * crop, 0, 255).astype(np.uint8)


def fog(image, draw, amount, decay):
    height, width = image.shape[:2]
    side = 1
    while side < max(height, width):
        side *= 2
    mist = diamond_square(side, decay, draw("uniform", -1, 1, (side * side - 1,)))[:height, :width, None]
    brightest = image.max() / 255
    return to_levels((image / 255 + amount * mist) * brightest / (brightest + amount))


def diamond_square(side, decay, numbers):
    """Heights on a torus, one point at a time; sizes of the random part are squared, as in the benchmark."""
    numbers, heights = iter(numbers), np.zeros((side, side))
    step, wobble = side, 100.0

    def raise_point(y, x, neighbours):
        around = sum(heights[(y + dy) % side, (x + dx) % side] for dy, dx in neighbours)
        heights[y, x] = around / 4 + wobble * wobble * next(numbers)

    while step >= 2:
        half = step // 2
        straight = [(half, 0), (-half, 0), (0, half), (0, -half)]
        diagonal = [(half, half), (half, -half), (-half, half), (-half, -half)]
        grid = range(0, side, step)
        for first_y, first_x, neighbours in ((half, half, diagonal), (0, half, straight), (half, 0, straight)):
            for y in grid:
                for x in grid:
                    raise_point(y + first_y, x + first_x, neighbours)
        step, wobble = half, wobble / decay
    heights -= heights.min()
    return heights / heights.max()


def brightness(image, draw, added):
    return by_pixel(image, lambda h, s, v: (h, s, min(v + added, 1)))


def saturate(image, draw, factor, added):
    return by_pixel(image, lambda h, s, v: (h, min(s * factor + added, 1), v))


def by_pixel(image, change):
    changed = [to_rgb(*change(*to_hsv(*pixel))) for pixel in (image / 255).reshape(-1, 3)]
    return to_levels(np.reshape(changed, image.shape))


def to_hsv(red, green, blue):
    """The textbook formulas in scikit-image's order of operations, because truncation shows the last bit."""
    value = max(red, green, blue)
    spread = value - min(red, green, blue)
    if spread == 0:
        return 0.0, 0.0, value
    if blue == value:
        hue = 4 + (red - green) / spread
    elif green == value:
        hue = 2 + (blue - red) / spread
    else:
        hue = (green - blue) / spread
    return hue / 6 % 1, spread / value, value


def to_rgb(hue, saturation, value):
    sextant = floor(hue * 6)
    within = hue * 6 - sextant
    low = value * (1 - saturation)
    falling, rising = value * (1 - within * saturation), value * (1 - (1 - within) * saturation)
    wheel = [
        (value, rising, low),
        (falling, value, low),
        (low, value, rising),
        (low, falling, value),
        (rising, low, value),
        (value, low, falling),
    ]
    return wheel[sextant % 6]


def contrast(image, draw, factor):
    values = image / 255
    means = values.mean(axis=(0, 1))
    return to_levels((values - means) * factor + means)


def elastic_transform(image, draw, alpha, sigma, affine):
    height, width = image.shape[:2]
    third, centre = min(height, width) // 3, np.array([width // 2, height // 2])
    before = np.array([centre + third, centre + np.array([third, -third]), centre - third], float)
    after = before + draw("uniform", -affine, affine, (3, 2))
    # x' = a x + b y + c: the map that takes the points before to the points after, then its inverse.
    forward = np.linalg.solve(np.column_stack([before, np.ones(3)]), after).T
    inverse = np.linalg.inv(np.vstack([forward, [0, 0, 1]]))
    y, x = np.mgrid[:height, :width]
    from_x, from_y, _ = np.einsum("ij,jhw->ihw", inverse, np.stack([x, y, np.ones_like(x)]))
    warped = [ndimage.map_coordinates(image[..., c] / 255, [from_y, from_x], order=1, mode="mirror") for c in range(3)]
    dx, dy = (
        ndimage.gaussian_filter(draw("uniform", -1, 1, (height, width)), sigma, mode="reflect", truncate=3) * alpha
        for _ in range(2)
    )
    shaken = [ndimage.map_coordinates(plane, [y + dy, x + dx], order=1, mode="reflect") for plane in warped]
    return to_levels(np.stack(shaken, axis=-1), HAIR)


def pixelate(image, draw, scale):
    height, width = image.shape[:2]
    small = Image.fromarray(image).resize((int(width * scale), int(height * scale)), Image.Resampling.BOX)
    return np.asarray(small.resize((width, height), Image.Resampling.BOX))


def jpeg_compression(image, draw, quality):
    file = BytesIO()
    Image.fromarray(image).save(file, "JPEG", quality=quality)
    return np.array(Image.open(file))


def spatter(image, draw, mean, std, sigma, threshold, amount, mud):
    liquid = smoothed(draw("normal", image.shape[:2]).astype(float) * std + mean, sigma)
    liquid[liquid < threshold] = 0
    if mud:
        cover = smoothed((liquid > threshold).astype(float), amount)[..., None]
        cover[cover < 0.8] = 0
        return to_levels(image / 255 * (1 - cover) + np.array([63, 42, 20]) / 255 * cover)
    light = water_light(to_levels(liquid))
    return to_levels(image / 255 + amount * light[..., None] * np.array([175, 238, 238]) / 255)


def water_light(depth):
    relief = np.minimum(distances(canny_edges(depth, 50, 150)), 20)
    relief = equalized_histogram(np.floor(box_mean(relief) + 1e-9).astype(int))
    padded = np.pad(relief.astype(float), 1, mode="reflect")
    kernel = [[-2, -1, 0], [-1, 1, 1], [0, 1, 2]]
    height, width = depth.shape
    lit = sum(kernel[a][b] * padded[a : a + height, b : b + width] for a in range(3) for b in range(3))
    light = depth * np.floor(box_mean(np.clip(lit, 0, 255)) + 0.5)
    return light / light.max() if light.any() else light


def box_mean(layer):
    padded = np.pad(layer.astype(float), 1, mode="reflect")
    height, width = layer.shape
    return sum(padded[a : a + height, b : b + width] for a in range(3) for b in range(3)) / 9


def distances(edges):
    """To the nearest edge pixel, by looking at all of them; 20 if there is none."""
    points = np.argwhere(edges)
    far = np.full(edges.shape, 20.0)
    for y, x in np.ndindex(edges.shape) if len(points) else ():
        far[y, x] = np.hypot(points[:, 0] - y, points[:, 1] - x).min()
    return far


def equalized_histogram(layer):
    """Level -> share of pixels at or below it, not counting the lowest level, spread over 0..255."""
    lowest = np.count_nonzero(layer == layer.min())
    if lowest == layer.size:
        return layer
    scale = np.float32(255) / np.float32(layer.size - lowest)
    table = {v: round(float(np.float32(np.count_nonzero(layer <= v) - lowest) * scale)) for v in np.unique(layer)}
    return np.vectorize(table.get)(layer)


def canny_edges(grey, low, high):
    """Pixel by pixel: Sobel, non-maximum suppression in four sectors, then growth from strong pixels to weak ones."""
    height, width = grey.shape
    value = np.pad(grey.astype(int), 1, mode="edge")
    gx, gy = np.zeros((height, width), int), np.zeros((height, width), int)
    for y, x in np.ndindex(height, width):
        window = value[y : y + 3, x : x + 3]
        gx[y, x] = (window[:, 2] - window[:, 0]) @ [1, 2, 1]
        gy[y, x] = (window[2] - window[0]) @ [1, 2, 1]
    strength = np.pad(abs(gx) + abs(gy), 1)
    ridges = np.zeros((height, width), bool)
    for y, x in np.ndindex(height, width):
        here, across, down = strength[y + 1, x + 1], abs(gx[y, x]), abs(gy[y, x])
        if down < 13573 / 32768 * across:
            ridges[y, x] = here > strength[y + 1, x] and here >= strength[y + 1, x + 2]
        elif down > (13573 / 32768 + 2) * across:
            ridges[y, x] = here > strength[y, x + 1] and here >= strength[y + 2, x + 1]
        else:
            side = -1 if (gx[y, x] < 0) != (gy[y, x] < 0) else 1
            ridges[y, x] = here > strength[y, x + 1 - side] and here > strength[y + 2, x + 1 + side]
    strength = strength[1:-1, 1:-1]
    edges = ridges & (strength > high)
    while True:
        near = ndimage.maximum_filter(edges, 3) & ridges & (strength > low)
        if np.array_equal(near | edges, edges):
            return edges
        edges |= near
