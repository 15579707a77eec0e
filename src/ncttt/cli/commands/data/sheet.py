"""`ncttt data sheet`: a picture of the corruptions."""

from pathlib import Path
from typing import Literal

from ncttt.base.errors import InputError
from ncttt.cli.commands.data._words import parse_corruptions

EXAMPLE = "ncttt data sheet digits --out corruptions.png"


def sheet(
    name: str,
    *,
    out: str,
    corruptions: str = "benchmark",
    split: str = "test",
    first: int = 0,
    seed: int = 0,
    constants: Literal["cifar", "imagenet"] | None = None,
    frost: str | None = None,
    root: str | None = None,
    image_size: int = 224,
) -> None:
    """Draw a contact sheet: a row for each corruption, a column for each severity.

    Args:
        name: Name of a set, or path of an image folder.
        out: Picture to write, such as sheet.png.
        corruptions: Names separated by commas, `benchmark` (the 15), or `all` (these and the 4 extra ones).
        split: Part of the set.
        first: Number of the first image shown; five of them take turns.
        seed: Seed of the random corruptions.
        constants: Table of constants; by default chosen by the size of the images.
        frost: Folder with photographs of frost; procedural textures by default.
        root: Folder of the data sets; else $NCTTT_DATA, else the user's cache folder.
        image_size: Size to which the files of an image folder are brought.
    """
    import numpy as np

    from ncttt.data import load
    from ncttt.data.corruptions import CORRUPTIONS, EXTRA
    from ncttt.data.corruptions.contact_sheet import contact_sheet

    if Path(out).suffix.lower() not in (".png", ".jpg", ".jpeg", ".webp"):
        raise InputError(f"a contact sheet is written as .png, .jpg or .webp; found {out!r}")
    chosen = parse_corruptions(corruptions, CORRUPTIONS, EXTRA)
    data = load(name, split, root, image_size=image_size)
    if not 0 <= first < len(data):
        raise InputError(f"{name} {split} has {len(data)} images; there is no image {first}")
    shown = range(first, min(first + 5, len(data)))
    images = data.images[np.array(shown)]
    contact_sheet(images, out, corruptions=chosen, seed=seed, constants=constants, frost=frost)
    print(out)
