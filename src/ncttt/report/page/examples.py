"""Images with what was predicted before and after: from a store with predictions and the images kept next to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice, zip_longest

import numpy as np

from ncttt.benchmark.store import Store
from ncttt.benchmark.streams import order_of
from ncttt.data import DATA_SETS
from ncttt.data.corruptions import CLEAN
from ncttt.report.accuracy import Row
from ncttt.report.names import column_of, corruption_order
from ncttt.report.page.evidence import Example
from ncttt.report.page.kept_images import kept_images, kept_originals, png
from ncttt.report.page.lines import MethodLine
from ncttt.report.page.setups import setups_of
from ncttt.report.shares import same_images


def examples_of(store: Store, rows: Iterable[Row], count: int) -> list[Example]:
    """Up to `count` images whose prediction changed, mended and broken ones in turn, corruption by corruption.

    They are of the learning method with the best mean. Where predictions or images are not here, there are none.
    """
    rows = list(rows)
    lines = [line for setup in setups_of(rows) for line in setup.lines if line.share is not None]
    sources = {same_images(row): row for row in rows if column_of(row).method == "source"}
    for line in sorted(lines, key=_worst_images_first):
        examples = list(islice(_in_turn(store, line, sources), count))
        if examples:
            return examples
    return []


def _worst_images_first(line: MethodLine) -> tuple[float, float]:
    """High severities first, and there the most accurate."""
    return (-(line.share.setup["severity"] or 0), -line.share.adapted) if line.share else (0, 0)


def _in_turn(store: Store, line: MethodLine, sources: dict[tuple, Row]) -> Iterator[Example]:
    shifted = [row for row in line.rows if row["corruption"] != CLEAN]
    rows = sorted(shifted, key=lambda row: (corruption_order(row["corruption"]), row.get("seed") or 0))
    firsts = {row["corruption"]: row for row in reversed(rows)}  # one seed of each corruption is enough
    each = [
        _changed(store, row, sources.get(same_images(row)), line.name)
        for row in rows
        if firsts[row["corruption"]] is row
    ]
    return (example for example in chain.from_iterable(zip_longest(*each)) if example is not None)


def _changed(store: Store, row: Row, source: Row | None, method: str) -> Iterator[Example]:
    """The images of a row that adaptation changed: the first mended, the first broken, the second mended ..."""
    before, after = _predicted(store, source), _predicted(store, row)
    shown = kept_images(store, row)
    if before is None or after is None or shown is None or not len(shown[1]) == len(before) == len(after):
        return
    (images, labels), originals = shown, kept_originals(store, row)
    places = order_of(labels, row["order"], row["seed"])
    truth, names = labels[places], _class_names(row["data"])
    mended, broken = (before != truth) & (after == truth), (before == truth) & (after != truth)
    in_turn = chain.from_iterable(zip_longest(mended.nonzero()[0], broken.nonzero()[0]))
    for place in (place for place in in_turn if place is not None):
        was, first, then = (names.get(int(each[place]), str(each[place])) for each in (truth, before, after))
        original = None if originals is None else png(originals[places[place]])
        yield Example(png(images[places[place]]), was, first, then, row["corruption"], method, original)


def _predicted(store: Store, row: Row | None) -> np.ndarray | None:
    after_each = None if row is None else store.predicted(row["key"])
    return None if after_each is None else after_each[-1]


def _class_names(data: str) -> dict[int, str]:
    return dict(enumerate(DATA_SETS[data].classes)) if data in list(DATA_SETS) else {}
