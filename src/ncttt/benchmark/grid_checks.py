"""What a grid may hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ncttt.adapt.protocols import PROTOCOLS
from ncttt.base.errors import InputError
from ncttt.base.numbers import check_seed, check_threads
from ncttt.benchmark.grid import Grid
from ncttt.data.corruptions import SEVERITIES
from ncttt.data.files.resizing import check_image_size, exact
from ncttt.data.orders import parse_order
from ncttt.data.planning import BATCH
from ncttt.data.sequences import parse_sequence

LISTS = ("data", "methods", "corruptions", "severities", "protocols", "orders", "sequences", "seeds")


def check_grid(grid: Grid) -> None:
    """Raise an `InputError` for the first thing that makes no sense in it."""
    for name in LISTS:
        values = getattr(grid, name)
        if not values:
            raise InputError(f"a grid needs at least one of its {name}; found none")
        if name not in ("data", "methods"):
            check_once(values, name)
    if grid.batch_sizes is not None:
        _check_batch_sizes(grid.batch_sizes)
    for seed in grid.seeds:
        check_least("seeds", seed, 0)
        check_seed("seeds", seed)
    check_threads("threads", grid.threads)
    if grid.image_size is not None:
        check_image_size(grid.image_size)
    if grid.resize is not None:
        exact(grid.resize, grid.image_size or 1)
    for severity in grid.severities:
        check_severity(severity)
    for protocol in [*grid.protocols, *(name for entry in grid.entries for name in entry.protocols or ())]:
        check_protocol(protocol)
    for order in grid.orders:
        parse_order(order)
    for sequence in grid.sequences:
        check_sequence(sequence)
    for steps in (grid.steps, *(entry.steps for entry in grid.entries)):
        if steps is not None and (not steps or steps != sorted(set(steps)) or steps[0] < 0):
            raise InputError(f"step counts must rise, as in [0, 1, 5, 20]; found {steps}")


def sizes_of_batches(grid: Grid, images: int, data: str) -> list[int]:
    """The batch sizes of a grid on so many images of a set; an `InputError` for one that no batch could have."""
    if grid.batch_sizes is None:
        return [min(BATCH, images)]
    for size in grid.batch_sizes:
        if size > images:
            raise InputError(
                f"batches of {size} images are asked for, and there are {images} images of {data}; use batch sizes "
                f"of at most {images}, or more images"
            )
    return grid.batch_sizes


def _check_batch_sizes(sizes: Sequence[int]) -> None:
    if not sizes:
        raise InputError("a grid needs at least one of its batch_sizes; found none")
    check_once(sizes, "batch_sizes")
    for size in sizes:
        check_least("batch_sizes", size, 1)


def check_severity(severity: int) -> None:
    """Raise unless this is from 1 to 5."""
    if severity not in SEVERITIES:
        raise InputError(f"severities go from 1 to 5; found {severity!r}")


def check_sequence(sequence: str) -> None:
    """Raise unless this is a sequence of domains in its one spelling, which rows have in them."""
    spelled = str(parse_sequence(sequence))
    if spelled != sequence:
        raise InputError(f"the sequence {sequence!r} is called {spelled!r}")


def check_protocol(protocol: str) -> None:
    """Raise unless this names a protocol."""
    if protocol == "mixed":
        raise InputError(
            "'mixed' is no protocol but an order; write protocols: [continual] and orders: [mixed], "
            "or orders: [mixed(by_class)] and the like"
        )
    PROTOCOLS.find(protocol)


def check_least(name: str, value: int, least: int) -> None:
    """Raise if a number is too small."""
    if value < least:
        raise InputError(f"{name} must be at least {least}; found {value}")


def check_once(values: Sequence[Any], name: str) -> None:
    """Raise if one of the values comes twice."""
    twice = [value for value in values if list(values).count(value) > 1]
    if twice:
        raise InputError(f"{name} {twice[0]!r} is named twice")
