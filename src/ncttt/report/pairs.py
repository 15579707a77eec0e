"""Rows of two methods that belong together: the same images in the same order, in the same setup."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ncttt.base.errors import InputError, nearest
from ncttt.data.corruptions import CLEAN
from ncttt.report.names import column_of, corruption_order, named_columns

if TYPE_CHECKING:
    from ncttt.benchmark.store import Store

SAME = ("data", "split", "images", "protocol", "order", "batch_size")  # in all pairs of a comparison
EACH = ("corruption", "severity", "constants", "seed")  # in the two rows of a pair
Asked = tuple[str, str | None]


class Pair(NamedTuple):
    """Two rows that differ in the method and what comes with it."""

    first: dict[str, Any]
    second: dict[str, Any]


def pairs_of(store: Store, first: Asked, second: Asked, where: Mapping[str, Any]) -> list[Pair]:
    """The rows of two methods (label, checkpoint or None for its only one), corruptions in the benchmark's order.

    Seeds that are missing of some corruption are left out, so that every corruption weighs the same.
    """
    one, other = (_rows(store, method, checkpoint, where) for method, checkpoint in (first, second))
    pairs = [Pair(row, other[key]) for key, row in one.items() if key in other]
    if any(pair.first["key"] == pair.second["key"] for pair in pairs):
        raise InputError(f"a comparison is of two methods or checkpoints; asked for {first[0]} against itself")
    if not pairs:
        raise InputError(
            f"{first[0]} and {second[0]} have no rows in common; the same "
            f"{', '.join((*SAME, *EACH)).replace('_', ' ')} are needed"
        )
    _check_one_setup(pairs)
    return sorted(_complete(pairs), key=lambda pair: (corruption_order(pair.first["corruption"]), pair.first["seed"]))


def _complete(pairs: Sequence[Pair]) -> list[Pair]:
    seeds: dict[str, set[int]] = {}
    for pair in pairs:
        seeds.setdefault(pair.first["corruption"], set()).add(pair.first["seed"])
    common = set.intersection(*seeds.values())
    if not common:
        raise InputError(f"no seed was measured on all of {', '.join(seeds)}; choose by seed= or corruption=")
    return [pair for pair in pairs if pair.first["seed"] in common]


def _rows(store: Store, method: str, checkpoint: str | None, where: Mapping[str, Any]) -> dict[tuple, dict[str, Any]]:
    chosen = dict(where) | {"method": method} | ({"checkpoint": checkpoint} if checkpoint else {})
    rows = store.rows(**chosen)
    if not rows:
        names = sorted({row["method"] for row in store.rows()})
        asked = " ".join(f"{name}={value}" for name, value in chosen.items())
        raise InputError(f"{store.path} has no rows of {asked}{nearest(method, names)}")
    columns = named_columns(column_of(row) for row in rows)
    if len(columns) > 1:
        raise InputError(
            f"one {method} is compared at a time; there are: {'; '.join(columns.values())}. "
            "Choose by checkpoint=, stop= or settings="
        )
    return _by_place(method, rows)


def _by_place(method: str, rows: Sequence[dict[str, Any]]) -> dict[tuple, dict[str, Any]]:
    by_place: dict[tuple, dict[str, Any]] = {}
    for row in rows:
        if by_place.setdefault(tuple(row[name] for name in (*SAME, *EACH)), row) is not row:
            raise InputError(
                f"{method} has two rows of {row['corruption']} with seed {row['seed']}; choose one by threads=, "
                "device= or key="
            )
    return by_place


def _check_one_setup(pairs: Sequence[Pair]) -> None:
    """Clean images have no severity, so they go with any; a stream of several corruptions goes with no other."""
    shifted = [pair.first for pair in pairs if pair.first["corruption"] != CLEAN]
    sequence = ("corruption",) if any("+" in row["corruption"] for row in shifted) else ()
    for rows, names in (([pair.first for pair in pairs], SAME), (shifted, ("severity", "constants", *sequence))):
        for name in names:
            values = sorted({str(row[name]) for row in rows})
            if len(values) > 1:
                raise InputError(f"a comparison has one {name}; the rows have {', '.join(values)}: choose one")
