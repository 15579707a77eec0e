"""`ncttt data`: list, fetch, verify and corrupt the data sets."""

import json as json_module
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from ncttt.base.errors import InputError, nearest

MB = 1_000_000


def list_(*, root: str | None = None, json: bool = False) -> None:
    """Show the data sets, their splits and whether they are on disk.

    Args:
        root: Folder of the data sets; else $NCTTT_DATA, else the user's cache folder.
        json: Print one JSON object, for scripts.
    """
    from ncttt.data import data_root
    from ncttt.data.sources import SOURCES, present, unfinished

    where = data_root(root)
    rows = {
        name: {
            "present": present(name, where),
            "unfinished": bool(facts.folder and unfinished(where / facts.folder)),
            "splits": list(facts.splits),
            "bytes": facts.bytes,
            "title": facts.title,
        }
        for name, facts in SOURCES.items()
    }
    if json:
        print(json_module.dumps({"root": str(where), "sets": rows}))
        return
    print(f"root: {where}")
    for name, row in rows.items():
        size = "?" if row["bytes"] is None else f"{row['bytes'] / MB:.0f} MB"
        state = "here" if row["present"] else "unfinished" if row["unfinished"] else "-"
        print(f"{name:<13} {state:<10} {size:>8}  {row['title']}")


def get(name: str, *, root: str | None = None) -> None:
    """Fetch a data set and verify it; does nothing when it is there already.

    Args:
        name: Name of the set, as `ncttt data list` shows it.
        root: Folder of the data sets; else $NCTTT_DATA, else the user's cache folder.
    """
    from ncttt.data import get as fetch

    with _bar() as progress:
        place = fetch(name, root, progress=progress, say=lambda line: print(line, file=sys.stderr))
    print(place)


def check(name: str, *, root: str | None = None, json: bool = False) -> None:
    """Verify what is on disk by checksums, shapes and counts; decodes every file of an image folder.

    Args:
        name: Name of a set, or path of an image folder.
        root: Folder of the data sets; else $NCTTT_DATA, else the user's cache folder.
        json: Print one JSON object, for scripts.
    """
    from ncttt.data.checking import OK
    from ncttt.data.checking import check as verify

    findings = verify(name, root)
    wrong = {what: state for what, state in findings.items() if state != OK}
    if json:
        print(json_module.dumps({"name": name, "ok": not wrong, "findings": findings}))
    else:
        for what, state in findings.items():
            print(f"{what}: {state}")
    if wrong:
        raise InputError(f"{name}: {len(wrong)} of {len(findings)} checks failed")


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


def parse_severities(text: str) -> tuple[int, ...]:
    """Severities from `5`, `1-5` or `1,3,5`.

    >>> parse_severities("1-3,5")
    (1, 2, 3, 5)
    """
    found: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"\s*([1-5])(?:-([1-5]))?\s*", part)
        first, last = (match[1], match[2] or match[1]) if match else ("", "")
        if not match or first > last:
            raise InputError(f"severities go from 1 to 5 and look like 5, 1-5 or 1,3,5; found {text!r}")
        found.update(range(int(first), int(last) + 1))
    return tuple(sorted(found))


def parse_corruptions(text: str, benchmark: tuple[str, ...], extra: tuple[str, ...]) -> tuple[str, ...]:
    """Names of corruptions from a comma-separated list, `benchmark`, or `all`.

    >>> parse_corruptions("fog, snow", ("snow", "fog"), ("spatter",))
    ('fog', 'snow')
    """
    known = (*benchmark, *extra)
    if text in ("all", "benchmark"):
        return known if text == "all" else tuple(benchmark)
    names = tuple(part.strip() for part in text.split(","))
    for name in names:
        if name not in known:
            raise InputError(f"no corruption {name!r}{nearest(name, known)}")
    return names


@contextmanager
def _bar() -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar on standard error, fed with bytes (done, total); None when nobody watches."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

    columns = BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("bytes", total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total or None)
