"""`ncttt data sheet`: a picture of the corruptions."""

from collections.abc import Sequence
from typing import Literal

from ncttt import data

EXAMPLE = "ncttt data sheet digits --out corruptions.png"


def sheet(
    name: str,
    *,
    out: str,
    corruptions: Sequence[str] = ("all",),
    split: str = "test",
    first: int = 0,
    seed: int = 0,
    constants: Literal["cifar", "imagenet"] | None = None,
    frost: str | None = None,
    root: str | None = None,
    image_size: int = 224,
    resize: str = "square",
) -> None:
    """Draw a contact sheet: a row for each corruption, a column for each severity.

    Args:
        name: Name of a set, or path of an image folder.
        out: Image file to write, such as sheet.png.
        corruptions: Names; `all` are the 15 of the benchmark, `extra` the 4 others.
        split: Part of the set.
        first: Index of the first image shown; five images take turns.
        seed: Seed of the random corruptions.
        constants: Table of constants; by default chosen by the size of the images.
        frost: Folder with photographs of frost; procedural textures by default.
        root: Folder of the data sets; else $NCTTT_DATA, else the user's cache folder.
        image_size: Size in pixels to which the files of an image folder are resized.
        resize: How they are resized: square scales the central square; crop or crop(R), such as crop(256), cuts out the
            centre.
    """
    path = data.draw_sheet(
        name,
        out,
        corruptions=corruptions,
        split=split,
        first=first,
        seed=seed,
        constants=constants,
        frost=frost,
        root=root,
        image_size=image_size,
        resize=resize,
    )
    print(path)
