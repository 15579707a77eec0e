"""`ncttt data corrupt`: corrupted copies of a data set."""

from pathlib import Path
from typing import Literal

from ncttt.cli.commands.data._words import parse_corruptions, parse_severities

EXAMPLE = "ncttt data corrupt digits --out digits-c --corruptions fog,contrast --severity 3,5"


def corrupt(
    name: str,
    *,
    out: str,
    severity: str = "1-5",
    corruptions: str = "all",
    split: str = "test",
    seed: int = 0,
    workers: int | None = None,
    constants: Literal["cifar", "imagenet"] | None = None,
    frost: str | None = None,
    root: str | None = None,
    image_size: int = 224,
    skip_bad: bool = False,
) -> None:
    """Corrupt a data set into the layout of CIFAR-C: `<corruption>.npy` with a block per severity, `labels.npy`.

    Args:
        name: Name of a set, or path of an image folder.
        out: Folder to write to; a run that was interrupted goes on there.
        severity: Severities from 1 to 5, as `5`, `1-5` or `1,3,5`.
        corruptions: Names separated by commas, `benchmark` (the 15), or `all` (these and the 4 extra ones).
        split: Part of the set.
        seed: Seed of the random corruptions.
        workers: Number of processes; by default one a processor.
        constants: Table of constants; by default chosen by the size of the images.
        frost: Folder with photographs of frost; procedural textures by default.
        root: Folder of the data sets; else $NCTTT_DATA, else the user's cache folder.
        image_size: Size to which the files of an image folder are brought.
        skip_bad: Leave out image files that cannot be read instead of stopping at the first.
    """
    from ncttt.data import load
    from ncttt.data.corruptions import CORRUPTIONS, EXTRA, generate
    from ncttt.data.decoded import check_before_decoding, decoded

    severities, chosen = parse_severities(severity), parse_corruptions(corruptions, CORRUPTIONS, EXTRA)
    options = {"corruptions": chosen, "severities": severities, "seed": seed, "workers": workers}
    options |= {"constants": constants, "frost": frost}
    data = load(name, split, root, image_size=image_size)
    check_before_decoding(data, Path(out), **options, skip_bad=skip_bad)
    if skip_bad:
        data = load(name, split, root, image_size=image_size, skip_bad=True)
    with decoded(data.images, Path(out)) as images:
        print(generate(images, data.labels, out, **options))
