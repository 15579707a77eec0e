"""Accuracy along a stream.

A line for each method, a moving mean of the images inside each domain; thin lines mark where another corruption begins.
Rows without predictions show the mean of each domain.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ncttt.base.errors import InputError
from ncttt.benchmark.store import Store
from ncttt.data.sequences import Kind
from ncttt.report.figures.shared.methods import Shown, explain, main_rows, setup_title, shown_methods
from ncttt.report.figures.shared.request import Request
from ncttt.report.figures.shared.selection import Row, check_one_setup
from ncttt.report.figures.shared.style import INK, TICK_SIZE, new_figure, styled
from ncttt.report.names import Column, column_of, corruption_order, short_corruptions
from ncttt.report.streams import domains_of, kind_of

PLACE = 14
NEEDS = "rows"
POINTS = 480  # of a line, so that a stream of any length makes a small file
FLAT, MOST_NAMED = 8, 36  # domains whose names fit side by side, and upright
BORDER = "#C4C4C4"


@dataclass(frozen=True)
class Track:
    """Share of right images at each place of each domain, mean over seeds; `each` says whether images were counted."""

    domains: tuple[Kind, ...]
    right: tuple[np.ndarray, ...]
    each: bool

    @property
    def accuracy(self) -> float:
        """Mean over all images, in percent."""
        return 100 * float(np.concatenate(self.right).mean())


def make(request: Request) -> Figure:
    """The figure of the rows, with the predictions of their store if they come from one."""
    return draw_stream(request.chosen_rows, right_images(str(request.rows), request.chosen_rows), request.window)


def right_images(path: str | Path, rows: Iterable[Row]) -> dict[str, np.ndarray]:
    """Whether each image was right, bool (N,) in the order of the stream, by the keys of rows; a CSV has none."""
    if Path(path).suffix == ".csv":
        return {}
    with Store(path, read_only=True) as store:
        found = {row["key"]: store.right(row["key"]) for row in rows}
    return {key: right[-1] for key, right in found.items() if right is not None}


@styled
def draw_stream(rows: Iterable[Row], right: Mapping[str, np.ndarray], window: int | None = None) -> Figure:
    """Accuracy of every method along one stream, or along the domains that rows of single corruptions are of.

    `right` is what `right_images` gives; without it each domain has the mean that its row tells. `window` is the number
    of images of the moving mean, by default a quarter of a domain; it ends
    where a domain ends.
    """
    rows = list(rows)
    tracks = tracks_of(rows, right)
    shown = shown_methods({column: track.accuracy for column, track in tracks.items()})
    first = next(iter(tracks.values()))
    sizes = [len(part) for part in first.right]
    window = _quarter(sizes) if window is None else window
    if window < 1:
        raise InputError(f"a moving mean is over a window of 1 image or more; found {window}")
    figure = new_figure(height=4.6)
    axes = figure.subplots()
    for number, column in enumerate(shown.names):
        _draw_track(axes, tracks[column], window, shown.looks[column], number)
    _draw_borders(axes, first.domains, sizes)
    what = f"moving mean of {window} images of a domain" if first.each else "mean of each domain"
    axes.set(xlabel=f"images of the stream, as they come ({what})", ylabel="accuracy, %", xlim=(0, sum(sizes)))
    row = stream_rows(rows)[0]
    title = f"{setup_title(row)}, {kind_of(row)}, batches of {row['batch_size']}"
    axes.set_title(title, pad=_pad(first.domains))
    axes.grid(axis="y")
    _explain(figure, axes, tracks, shown)
    return figure


def tracks_of(rows: Iterable[Row], right: Mapping[str, np.ndarray]) -> dict[Column, Track]:
    """The track of every method, all through the same domains; a method on several checkpoints on the main one."""
    rows = main_rows(stream_rows(rows))
    check_one_setup(rows, but=("method", "checkpoint", "settings"))
    counted = all(row["key"] in right for row in rows)
    by_column: dict[Column, list[Row]] = {}
    for row in rows:
        by_column.setdefault(column_of(row), []).append(row)
    tracks = {column: _track(own, right if counted else {}) for column, own in by_column.items()}
    longest = max((track.domains for track in tracks.values()), key=len)
    for column, track in tracks.items():
        if track.domains != longest:
            raise InputError(
                f"the figure shows one stream, but {column.label} has {len(track.domains)} of its {len(longest)} "
                "domains; choose by --where.method or --where.corruption"
            )
    return tracks


def stream_rows(rows: Iterable[Row]) -> list[Row]:
    """The rows of one long stream, or where there is none those of single corruptions, in the benchmark's order."""
    rows = sorted(rows, key=lambda row: corruption_order(row["corruption"]))
    long = [row for row in rows if "+" in row["corruption"] or len(domains_of(row)) > 1]
    names = list(dict.fromkeys(row["corruption"] for row in long))
    if len(names) > 1:
        raise InputError(
            f"the figure shows one stream, but the rows go through {' and '.join(names[:3])}; "
            "choose by --where.corruption"
        )
    return long or rows


def _track(rows: Sequence[Row], right: Mapping[str, np.ndarray]) -> Track:
    """The domains of a method's rows one after another, those of seeds on top of each other."""
    parts: dict[tuple[int, Kind], list[np.ndarray]] = {}
    names = list(dict.fromkeys(row["corruption"] for row in rows))
    for row in rows:
        domains = domains_of(row)
        start = names.index(row["corruption"]) if len(domains) == 1 else 0
        for place, (domain, images) in enumerate(zip(domains, _parts(row, domains, right), strict=True), start):
            parts.setdefault((place, domain), []).append(images)
    means = tuple(np.mean(each, axis=0) for each in parts.values())
    return Track(tuple(domain for _, domain in parts), means, bool(right))


def _parts(row: Row, domains: Sequence[Kind], right: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """Whether the images of each domain were right; without predictions, the share that the row tells for each."""
    if right:
        return np.split(right[row["key"]].astype(float), len(domains))
    each = json.loads(row.get("accuracy_of_parts") or "{}") if len(domains) > 1 else {domains[0][0]: row["accuracy"]}
    names = [name for name, _ in domains]
    if len(set(names)) < len(names) or not set(names) <= set(each):
        raise InputError(
            f"the row of {row['method']} tells no accuracy for each of its {len(names)} domains ({row['order']}); give "
            "the store of `ncttt bench`, which keeps the predictions of every image"
        )
    return [np.full(row["images"] // len(names), each[name]) for name in names]


def moving_mean(values: np.ndarray, window: int, places: np.ndarray) -> np.ndarray:
    """The mean of the `window` values (N,) around each place, of fewer at both ends.

    >>> moving_mean(np.array([0.0, 0.0, 3.0, 3.0]), 3, np.arange(4)).tolist()
    [0.0, 1.0, 2.0, 3.0]
    """
    sums = np.concatenate([[0.0], np.cumsum(values)])
    low = np.maximum(places - (window - 1) // 2, 0)
    high = np.minimum(places + window // 2 + 1, len(values))
    return (sums[high] - sums[low]) / (high - low)


def _quarter(sizes: Sequence[int]) -> int:
    """A quarter of a domain, or the whole where they are many and short."""
    return max(1, min(sizes) // (4 if len(sizes) <= MOST_NAMED else 1))


def _draw_track(axes: Axes, track: Track, window: int, look: Mapping[str, object], number: int) -> None:
    """A line with a gap wherever another corruption begins."""
    places: list[float] = []
    heights: list[float] = []
    start, last = 0, track.domains[0][0]
    for (name, _), part in zip(track.domains, track.right, strict=True):
        count = min(len(part), max(2, POINTS // len(track.right)))
        own = np.linspace(0, len(part) - 1, count).round().astype(int)
        gap = [math.nan] if name != last else []
        places += [*gap, *(start + own + 0.5)]
        heights += [*gap, *(100 * moving_mean(part, window, own))]
        start, last = start + len(part), name
    every: dict[str, Any] = (
        {"markevery": (len(places) * number // 80, len(places) // 10 + 1)} if "marker" in look else {}
    )
    axes.plot(places, heights, **{"lw": 1.4, **look}, **every)


def _runs(domains: Sequence[Kind], sizes: Sequence[int]) -> list[tuple[str, int, int]]:
    """Name, start and end of each stretch of one corruption, whatever its severities."""
    runs, start = [], 0
    for name, each in groupby(zip(domains, sizes, strict=True), key=lambda pair: pair[0][0]):
        end = start + sum(size for _, size in each)
        runs.append((name, start, end))
        start = end
    return runs


def _draw_borders(axes: Axes, domains: Sequence[Kind], sizes: Sequence[int]) -> None:
    runs = _runs(domains, sizes)
    for _, start, _ in runs[1:]:
        axes.axvline(start, color=BORDER, lw=0.7, zorder=0)
    if len(runs) > MOST_NAMED:
        return
    names = short_corruptions(name for name, _, _ in runs)
    for name, start, end in runs:
        look = {"ha": "center", "va": "bottom", "fontsize": TICK_SIZE - 1, "rotation": 0 if len(runs) <= FLAT else 90}
        axes.text((start + end) / 2, 1.015, names[name], transform=axes.get_xaxis_transform(), color=INK, **look)


def _pad(domains: Sequence[Kind]) -> float:
    """Points between the axes and the title, for the names of domains."""
    runs = _runs(domains, [1] * len(domains))
    if len(runs) > MOST_NAMED:
        return 6
    longest = max(map(len, short_corruptions(name for name, _, _ in runs).values()))
    return 16 if len(runs) <= FLAT else 10 + 4.7 * longest


def _explain(figure: Figure, axes: Axes, tracks: Mapping[Column, Track], shown: Shown) -> None:
    names = [f"{name} {tracks[column].accuracy:.1f} %" for column, name in shown.names.items()]
    explain(figure, axes.lines[: len(names)], names, shown.left_out)
