"""A whole corrupted set on disk, in the layout of CIFAR-C: several processes, bounded memory, file by file.

A file has its name once it is whole, so a run that was killed or failed redoes at most the file in hand.
"""

import errno
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ncttt.base.errors import InputError
from ncttt.base.files import replace_file, replacing
from ncttt.base.pools import cores
from ncttt.base.progress import ProgressDisplay
from ncttt.data.corruptions import metadata, textures
from ncttt.data.corruptions.apply import check, corrupt, is_whole
from ncttt.data.corruptions.registry import CORRUPTIONS, SEVERITIES, expand_corruptions, table_for
from ncttt.data.files.prefetch import in_processes

Array = np.ndarray
Progress = Callable[[int, int], None]
_PIECE_VALUES = 2**21  # values in a piece of work: 682 images of 32 pixels, 13 of 224
_WORTH_A_PROCESS = 30  # pieces: as long as it takes to start a process and import what it needs


class Piece(NamedTuple):
    """Some images of a set, to be corrupted."""

    images: Array
    corruption: str
    severity: int
    start: int
    options: dict


def generate(
    images: Array,
    labels: Array,
    out: str | Path,
    *,
    corruptions: Sequence[str] = CORRUPTIONS,
    severities: Sequence[int] = SEVERITIES,
    seed: int = 0,
    workers: int | None = None,
    constants: str | None = None,
    frost: str | Path | None = None,
    progress: Progress | None = None,
) -> Path:
    """Write `<corruption>.npy` (severities * N, H, W, 3), `labels.npy` and `corruptions.json` to the folder `out`.

    `images` is (N, H, W, 3) uint8, `labels` (N,). Severities are stacked in blocks, as in CIFAR-C. A run that was
    killed goes on with the files that are missing; the bytes do not depend on that, nor on `workers`. `progress` is
    called with the images done and all there are to do; without it a bar is shown on a terminal.

    >>> from tempfile import mkdtemp
    >>> images, labels = np.zeros((3, 32, 32, 3), np.uint8), np.arange(3)
    >>> folder = generate(images, labels, mkdtemp(), corruptions=["fog"], severities=[1, 5])
    >>> np.load(folder / "fog.npy").shape, np.load(folder / "labels.npy").tolist()
    ((6, 32, 32, 3), [0, 1, 2, 0, 1, 2])
    """
    out, labels = Path(out), np.asarray(labels)
    names, severities = expand_corruptions(corruptions, clean=False), list(severities)
    check_request(images, names, severities, seed, workers)
    _check_labels(images, labels)
    height, width = images.shape[1:3]
    table = table_for(height, width, constants)
    if frost is not None:
        textures.textures_for(height, width, table, seed, frost)  # unreadable photographs are told before all else
    settings = metadata.describe(images, labels, names, severities, seed, table, frost)
    options = {"seed": seed, "constants": table, "frost": frost}
    try:
        out.mkdir(parents=True, exist_ok=True)
        metadata.claim(out, settings, names)
        _write_labels(out / "labels.npy", np.tile(labels, len(severities)))
        _write_all(images, out, names, severities, options, workers, progress)
    except OSError as error:
        raise InputError(_explained(error, out, len(names) * len(severities) * images.nbytes)) from error
    return out


def check_request(
    images: Array, corruptions: Sequence[str], severities: Sequence[int], seed: int, workers: int | None
) -> None:
    """Refuse what cannot be generated, in words; of the images the shape and the type are looked at alone."""
    if workers is not None and (not is_whole(workers) or workers < 1):
        raise InputError(f"{workers!r} workers; expected at least 1, or None for one a core")
    if not corruptions or not severities:
        raise InputError(
            f"asked for corruptions {corruptions} at severities {severities}; expected at least one of each"
        )
    for corruption in corruptions:
        for severity in severities:
            check(images, corruption, severity, seed)
    if len(set(severities)) < len(severities):
        raise InputError(f"severities {severities} name one twice; expected each once")


def _check_labels(images: Array, labels: Array) -> None:
    if len(images) == 0 or labels.shape != (len(images),):
        raise InputError(f"labels of shape {labels.shape} for {len(images)} images; expected ({len(images)},), N > 0")
    if labels.dtype.kind not in "iu":
        raise InputError(f"labels are {labels.dtype}; expected integers")


def _write_labels(path: Path, labels: Array) -> None:
    missing = not path.exists()
    if missing:
        with BytesIO() as file:
            np.save(file, labels, allow_pickle=False)
            replace_file(path, file.getvalue())
    metadata.record(path, anew=missing)


def _write_all(
    images: Array,
    out: Path,
    corruptions: list[str],
    severities: list[int],
    options: dict,
    workers: int | None,
    progress: Progress | None,
) -> None:
    shape = (len(severities) * len(images), *images.shape[1:])
    missing = [name for name in corruptions if not _finished(out / f"{name}.npy", shape)]
    size = max(1, _PIECE_VALUES // int(np.prod(shape[1:])))
    starts = range(0, len(images), size)
    pieces = (
        Piece(images[start : start + size], name, severity, start, options)
        for name in missing
        for severity in severities
        for start in starts
    )
    in_a_file = len(severities) * len(starts)
    total, done = len(corruptions) * shape[0], (len(corruptions) - len(missing)) * shape[0]
    # One stream of pieces for all files: the processes need not wait at the end of each.
    stream = in_processes(_corrupted, pieces, _worker_count(workers, in_a_file * len(missing)))
    with _reporting(progress, done, total) as report, closing(stream) as corrupted:
        for name in missing:
            with replacing(out / f"{name}.npy") as file:
                np.lib.format.write_array_header_1_0(file, _header(shape))
                for _ in range(in_a_file):
                    # Written rather than memory-mapped: a full disk is then an error, not a SIGBUS.
                    rows = next(corrupted)
                    file.write(rows.data)
                    report(len(rows))
            metadata.record(out / f"{name}.npy", anew=True)


def _finished(path: Path, shape: tuple[int, ...]) -> bool:
    """Whether the whole file is there; one of another shape is an error, never overwritten."""
    if not path.exists():
        return False
    with BytesIO() as header:
        np.lib.format.write_array_header_1_0(header, _header(shape))
        expected = header.getvalue()
    with path.open("rb") as file:
        fits = file.read(len(expected)) == expected and path.stat().st_size == len(expected) + int(np.prod(shape))
    if not fits:
        raise InputError(f"{path} is not a uint8 array of shape {shape}; move it away or choose another folder")
    metadata.record(path, anew=False)  # a kill may fall between the renaming and this
    return True


def _header(shape: tuple[int, ...]) -> dict:
    return {"descr": "|u1", "fortran_order": False, "shape": shape}


def _worker_count(asked: int | None, pieces: int) -> int:
    """As many as asked, or one a core if there is enough to do; 1 means this process itself."""
    return max(1, min(asked or min(cores(), pieces // _WORTH_A_PROCESS), pieces))


def _corrupted(piece: Piece) -> Array:
    indices = range(piece.start, piece.start + len(piece.images))
    return corrupt(piece.images, piece.corruption, piece.severity, indices=indices, **piece.options)


@contextmanager
def _reporting(progress: Progress | None, done: int, total: int) -> Iterator[Callable[[int], None]]:
    """A function to call with the number of images newly done."""
    with ProgressDisplay("images", total, done=done, lines=False) as display:
        if progress is not None:
            progress(done, total)

        def report(count: int) -> None:
            display.advance(count)
            if progress is not None:
                progress(display.done, total)

        yield report


def _explained(error: OSError, out: Path, size: int) -> str:
    full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    reason = f"no room for {size / 2**20:.0f} MiB" if full else "cannot write"
    return f"{reason} in {out}: {error}; what was finished is kept, run again to go on"
