"""Rows of two methods that belong together: the same images in the same order, adapted to in the same way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ncttt.errors import InputError, nearest
from ncttt.report.order import CLEAN, corruption_order

if TYPE_CHECKING:
    from ncttt.benchmark.store import Store

SAME = ("data", "split", "images", "protocol", "order", "batch_size")  # in all pairs of a comparison
EACH = ("corruption", "severity", "constants", "seed")  # in the two rows of a pair


class Pair(NamedTuple):
    """Two rows that differ in the method and what comes with it."""

    first: dict[str, Any]
    second: dict[str, Any]


def pairs_of(store: Store, methods: Mapping[str, str | None], where: Mapping[str, Any]) -> list[Pair]:
    """The rows of two methods, each on the checkpoint named or its only one, corruptions in the benchmark's order."""
    if len(methods) != 2:
        raise InputError(f"a comparison is of two methods; asked for {', '.join(methods)} alone")
    first, second = (_rows(store, method, checkpoint, where) for method, checkpoint in methods.items())
    shared = first.keys() & second.keys()
    if not shared:
        raise InputError(
            f"{' and '.join(methods)} have no rows in common: the same "
            f"{', '.join((*SAME, *EACH)).replace('_', ' ')} are needed"
        )
    pairs = [Pair(first[key], second[key]) for key in shared]
    _check_one_way(pairs)
    return sorted(pairs, key=lambda pair: (corruption_order(pair.first["corruption"]), pair.first["seed"]))


def _rows(store: Store, method: str, checkpoint: str | None, where: Mapping[str, Any]) -> dict[tuple, dict[str, Any]]:
    chosen = dict(where) | {"method": method} | ({"checkpoint": checkpoint} if checkpoint else {})
    rows = store.rows(**chosen)
    if not rows:
        names = sorted({row["method"] for row in store.rows()})
        asked = " ".join(f"{name}={value}" for name, value in chosen.items())
        raise InputError(f"{store.path} has no rows of {asked}{nearest(method, names)}")
    _check_one_column(method, rows)
    return {tuple(row[name] for name in (*SAME, *EACH)): row for row in rows}


def _check_one_column(method: str, rows: Sequence[Mapping[str, Any]]) -> None:
    for name in ("checkpoint", "settings", "stop", "threads", "device"):
        found = sorted({str(row[name]) for row in rows})
        if len(found) > 1:
            raise InputError(f"{method} has rows of several {name}: {', '.join(found)}; choose one by {name}=")


def _check_one_way(pairs: Sequence[Pair]) -> None:
    """Clean images have no severity, so they go with any."""
    shifted = [pair.first for pair in pairs if pair.first["corruption"] != CLEAN]
    for rows, names in (([pair.first for pair in pairs], SAME), (shifted, ("severity", "constants"))):
        for name in names:
            found = sorted({str(row[name]) for row in rows})
            if len(found) > 1:
                raise InputError(f"a comparison has one {name}; the rows have {', '.join(found)}: choose one")
