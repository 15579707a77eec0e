"""A picture of the corruptions: one row each, one column a severity, to see that they look like their names."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from ncttt.data.corruptions.apply import corrupt
from ncttt.data.corruptions.registry import CORRUPTIONS, SEVERITIES

Array = np.ndarray
_GAP, _LABEL_WIDTH, _LABEL_HEIGHT = 4, 150, 22


def contact_sheet(
    images: Array,
    path: str | Path | None = None,
    *,
    corruptions: Sequence[str] = CORRUPTIONS,
    seed: int = 0,
    constants: str | None = None,
    frost: str | Path | None = None,
    cell: int = 96,
) -> Image.Image:
    """The sheet of `images` (N, H, W, 3) uint8 as a picture, row r showing image r modulo N; saved to `path` if given.

    >>> contact_sheet(np.zeros((1, 32, 32, 3), np.uint8), corruptions=["contrast"], cell=32).size
    (366, 62)
    """
    columns = len(SEVERITIES) + 1
    size = _LABEL_WIDTH + columns * (cell + _GAP), _LABEL_HEIGHT + len(corruptions) * (cell + _GAP) + _GAP
    sheet = Image.new("RGB", size, "white")
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(12)
    for column, title in enumerate(("clean", *SEVERITIES)):
        pen.text((_LABEL_WIDTH + column * (cell + _GAP), 4), str(title), "black", font)
    for row, corruption in enumerate(corruptions):
        top = _LABEL_HEIGHT + row * (cell + _GAP)
        pen.text((6, top + cell // 2 - 6), corruption, "black", font)
        number = row % len(images)
        options = {"seed": seed, "constants": constants, "frost": frost}
        shown = at_each_severity(images[number], corruption, index=number, **options)
        for column, image in enumerate((images[number], *shown)):
            tile = Image.fromarray(image).resize((cell, cell), Image.Resampling.NEAREST)
            sheet.paste(tile, (_LABEL_WIDTH + column * (cell + _GAP), top))
    if path is not None:
        sheet.save(path)
    return sheet


def at_each_severity(image: Array, corruption: str, *, index: int = 0, **options: Any) -> Array:
    """One image (H, W, 3) uint8 under the five severities, (5, H, W, 3), as `corrupt` makes it with these options.

    >>> at_each_severity(np.zeros((32, 32, 3), np.uint8), "fog").shape
    (5, 32, 32, 3)
    """
    corrupted = [corrupt(image[None], corruption, severity, indices=[index], **options) for severity in SEVERITIES]
    return np.concatenate(corrupted)
