"""What the shift looks like: one image of a set under each corruption."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ncttt.benchmark.store import Store
from ncttt.data.corruptions import CLEAN
from ncttt.report.accuracy import Row
from ncttt.report.names import corruption_order
from ncttt.report.page.evidence import ShiftedImage
from ncttt.report.page.kept_images import kept_images, kept_originals, png


def shifts_of(store: Store, rows: Iterable[Row]) -> list[ShiftedImage]:
    """The first image of the set without a corruption and under each, at its highest severity.

    Where the images are not next to the store, there are none.
    """
    single = [row for row in rows if row.get("corruption") and "+" not in row["corruption"]]
    worst: dict[str, Row] = {}
    for row in sorted(single, key=lambda row: row.get("severity") or 0):
        if row["data"] == single[0]["data"]:
            worst[row["corruption"]] = row
    shown = list(_shown(store, worst))
    return shown if len(shown) > 1 else []


def _shown(store: Store, worst: dict[str, Row]) -> Iterator[ShiftedImage]:
    shifted = sorted(worst.keys() - {CLEAN}, key=corruption_order)
    originals = kept_originals(store, worst[shifted[0]]) if shifted else None
    if originals is not None:
        yield ShiftedImage(png(originals[0]), worst[shifted[0]]["data"], CLEAN, 0)
    for name in shifted:
        found = kept_images(store, worst[name])
        if found is not None:
            yield ShiftedImage(png(found[0][0]), worst[name]["data"], name, worst[name]["severity"])
