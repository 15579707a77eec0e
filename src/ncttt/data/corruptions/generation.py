"""A whole corrupted set on disk, in the layout of CIFAR-C: several processes, resumable, bounded memory."""

import errno
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ncttt.base.errors import InputError
from ncttt.data.corruptions import metadata, textures
from ncttt.data.corruptions.apply import SEVERITIES, check, corrupt
from ncttt.data.corruptions.constants import CORRUPTIONS, table_for
from ncttt.data.corruptions.progress import Progress, reporting
from ncttt.data.corruptions.stack import Stack, npy_bytes, write_atomically
from ncttt.data.corruptions.workers import check_workers, run_all, worker_count

Array = np.ndarray
_PIECE_VALUES = 2**21  # values in a piece of work: 682 images of 32 pixels, 13 of 224


class Piece(NamedTuple):
    """Some images of one severity of one corruption, and where they go."""

    stack: Stack
    corruption: str
    severity: int
    start: int
    first_row: int


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
    progress: Callable[[int, int], None] | None = None,
) -> Path:
    """Write `<corruption>.npy` (severities * N, H, W, 3), `labels.npy` and `corruptions.json` to the folder `out`.

    `images` is (N, H, W, 3) uint8, `labels` (N,). Severities are stacked in blocks, as in CIFAR-C. A run that was
    killed goes on where it was; the bytes do not depend on that, nor on `workers`. `progress` is called with the
    images done and all there are to do; without it a bar is shown on a terminal.

    >>> from tempfile import mkdtemp
    >>> images, labels = np.zeros((3, 32, 32, 3), np.uint8), np.arange(3)
    >>> folder = generate(images, labels, mkdtemp(), corruptions=["fog"], severities=[1, 5])
    >>> np.load(folder / "fog.npy").shape, np.load(folder / "labels.npy").tolist()
    ((6, 32, 32, 3), [0, 1, 2, 0, 1, 2])
    """
    out, labels = Path(out), np.asarray(labels)
    corruptions, severities = list(corruptions), list(severities)
    _check_request(images, labels, corruptions, severities, seed, workers)
    height, width = images.shape[1:3]
    table = table_for(height, width, constants)
    if frost is not None:
        textures.textures_for(height, width, table, seed, frost)  # unreadable photographs are told before all else
    settings = metadata.describe(images, labels, severities, seed, table, frost)
    options = {"seed": seed, "constants": table, "frost": frost}
    shape = (len(severities) * len(images), *images.shape[1:])
    stacks = {name: Stack(out / f"{name}.npy", shape) for name in dict.fromkeys(corruptions)}
    try:
        _prepare(out, settings, labels, severities, [stack.path for stack in stacks.values()])
        with reporting(progress, len(stacks) * shape[0]) as report:
            _fill(images, stacks, severities, options, workers, report)
    except OSError as error:
        raise InputError(_explained(error, out, len(stacks) * int(np.prod(shape)))) from error
    return out


def _check_request(
    images: Array, labels: Array, corruptions: list[str], severities: list[int], seed: int, workers: int | None
) -> None:
    check_workers(workers)
    if not corruptions or not severities:
        raise InputError(
            f"asked for corruptions {corruptions} at severities {severities}; expected at least one of each"
        )
    for corruption in corruptions:
        for severity in severities:
            check(images, corruption, severity, seed)
    if len(set(severities)) < len(severities):
        raise InputError(f"severities {severities} name one twice; expected each once")
    if len(images) == 0 or labels.shape != (len(images),):
        raise InputError(f"labels of shape {labels.shape} for {len(images)} images; expected ({len(images)},), N > 0")
    if labels.dtype.kind not in "iu":
        raise InputError(f"labels are {labels.dtype}; expected integers")


def _prepare(out: Path, settings: dict, labels: Array, severities: list[int], outputs: list[Path]) -> None:
    out.mkdir(parents=True, exist_ok=True)
    path = out / "labels.npy"
    if not metadata.refuse_other_making(out, settings, [*outputs, path]):
        metadata.write(out, settings)
    missing = not path.exists()
    if missing:
        write_atomically(path, npy_bytes(np.tile(labels, len(severities))))
    metadata.record(path, anew=missing)


def _fill(
    images: Array, stacks: dict[str, Stack], severities: list[int], options: dict, workers: int | None, report: Progress
) -> None:
    size = max(1, _PIECE_VALUES // int(np.prod(images.shape[1:])))
    missing = {name: _missing(name, stack, severities, len(images), size) for name, stack in stacks.items()}
    left = {name: len(pieces) for name, pieces in missing.items()}
    count = sum(left.values())
    report(sum(stack.shape[0] for stack in stacks.values()) - sum(_images_in(missing, len(images), size)))
    for name in stacks:
        _finish_if_whole(stacks[name], left[name])
    tasks = (
        (piece, images[piece.start : piece.start + size], options) for pieces in missing.values() for piece in pieces
    )
    for piece in run_all(_do_piece, tasks, worker_count(workers, count)):
        piece.stack.record(piece.first_row)
        left[piece.corruption] -= 1
        _finish_if_whole(piece.stack, left[piece.corruption])
        report(min(size, len(images) - piece.start))


def _missing(name: str, stack: Stack, severities: list[int], count: int, size: int) -> list[Piece]:
    if stack.finished():
        return []
    done = stack.begin()
    pieces = (
        Piece(stack, name, severity, start, block * count + start)
        for block, severity in enumerate(severities)
        for start in range(0, count, size)
    )
    return [piece for piece in pieces if piece.first_row not in done]


def _images_in(missing: dict[str, list[Piece]], count: int, size: int) -> Iterator[int]:
    return (min(size, count - piece.start) for pieces in missing.values() for piece in pieces)


def _finish_if_whole(stack: Stack, left: int) -> None:
    if left == 0:
        unnamed = not stack.path.exists()
        if unnamed:
            stack.finish()
        # Also if it has its name already: a kill may fall between the renaming and this.
        metadata.record(stack.path, anew=unnamed)


def _do_piece(task: tuple[Piece, Array, dict]) -> Piece:
    piece, images, options = task
    indices = range(piece.start, piece.start + len(images))
    piece.stack.write(piece.first_row, corrupt(images, piece.corruption, piece.severity, indices=indices, **options))
    return piece


def _explained(error: OSError, out: Path, size: int) -> str:
    full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    reason = f"no room for {size / 2**20:.0f} MiB" if full else "cannot write"
    return f"{reason} in {out}: {error}; what was finished is kept, run again to go on"
