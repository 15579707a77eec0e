"""`ncttt data corrupt`: a corrupted copy of a data set, on disk."""

from collections.abc import Sequence
from typing import Literal

from ncttt import data

EXAMPLE = "ncttt data corrupt digits --out digits-c --corruptions fog,contrast --severity 3,5"


def corrupt(
    name: str,
    *,
    out: str,
    severity: Sequence[int] = (1, 2, 3, 4, 5),
    corruptions: Sequence[str] = ("all", "extra"),
    split: str = "test",
    seed: int = 0,
    workers: int | None = None,
    constants: Literal["cifar", "imagenet"] | None = None,
    frost: str | None = None,
    root: str | None = None,
    image_size: int = 224,
    resize: str = "square",
    skip_bad: bool = False,
) -> None:
    """Corrupt a data set into the layout of CIFAR-C: `<corruption>.npy` with a block per severity, `labels.npy`.

    Args:
        name: Name of a set, or path of an image folder.
        out: Folder to write to; an interrupted run continues there.
        severity: Severities from 1 to 5, as `5`, `1-5` or `1,3,5`.
        corruptions: Names; `all` are the 15 of the benchmark, `extra` the 4 others.
        split: Part of the set.
        seed: Seed of the random corruptions.
        workers: Number of processes; by default one for each core.
        constants: Table of constants; by default chosen by the size of the images.
        frost: Folder with photographs of frost; procedural textures by default.
        root: Folder of the data sets; else $NCTTT_DATA, else the user's cache folder.
        image_size: Size in pixels to which the files of an image folder are resized.
        resize: How they are resized: square scales the central square; crop or crop(R), such as crop(256), cuts out the
            centre.
        skip_bad: Leave out image files that cannot be read instead of stopping at the first.
    """
    folder = data.corrupt_set(
        name,
        out,
        corruptions=corruptions,
        severities=severity,
        split=split,
        seed=seed,
        workers=workers,
        constants=constants,
        frost=frost,
        root=root,
        image_size=image_size,
        resize=resize,
        skip_bad=skip_bad,
    )
    print(folder)
