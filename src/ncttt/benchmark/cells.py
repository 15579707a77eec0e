"""From a grid to its cells: names looked up, what contradicts itself refused, nothing computed yet."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import product
from typing import Any

from ncttt.benchmark.cell import PROTOCOLS, SEQUENCES, Cell
from ncttt.benchmark.scenes import CLEAN, Pictures, Scene
from ncttt.benchmark.streams import check_order
from ncttt.checkpoint import description, method_from, method_settings
from ncttt.data.corruptions import CORRUPTIONS, EXTRA
from ncttt.data.corruptions.apply import SEVERITIES
from ncttt.errors import InputError, nearest
from ncttt.grid import Entry, Grid
from ncttt.methods import METHODS, Method

NAMES = {"all": CORRUPTIONS, "extra": EXTRA}


def cells_of(grid: Grid) -> list[Cell]:
    """The cells of a grid, scene by scene, so that what shares images is measured together."""
    _check_lists(grid)
    scenes = _scenes(grid)
    for entry in grid.methods:
        _check_classes(grid, entry)
    cells = [
        cell
        for severity_scenes in scenes
        for chosen, protocols in _groups(severity_scenes, grid)
        for protocol, order, batch, seed in product(protocols, grid.orders, grid.batch_sizes, grid.seeds)
        for entry in grid.methods
        if protocol in (entry.protocols or grid.protocols)
        for cell in _cells(grid, entry, chosen, protocol=protocol, order=order, batch_size=batch, seed=seed)
    ]
    _check_conflicts(cells)
    return cells


def checkpoints_of(entry: Entry) -> list[str]:
    """The checkpoints of an entry, however many there are."""
    return [entry.checkpoint] if isinstance(entry.checkpoint, str) else entry.checkpoint


def _pictures(grid: Grid) -> Pictures:
    return Pictures(grid.data, grid.split, grid.images, grid.skip, grid.root)


def _cells(grid: Grid, entry: Entry, scenes: tuple[Scene, ...], **rest: Any) -> Iterator[Cell]:
    for checkpoint in checkpoints_of(entry):
        described, settings = _resolved(checkpoint, entry.method, json.dumps(entry.settings))
        steps = entry.steps or grid.steps
        # Steps beyond the method's own would let an online stream go on from another state than it is meant to.
        counts = (settings["steps"],) if steps is None or not METHODS[entry.method].learns else tuple(steps)
        yield Cell(
            scenes=scenes,
            method=settings | {"steps": counts[-1]},
            label=entry.label or entry.method,
            checkpoint=checkpoint,
            weights=described["weights_sha256"],
            steps=counts,
            stop=entry.stop,
            threads=grid.threads,
            device=grid.device,
            **rest,
        )


@lru_cache(maxsize=256)
def _resolved(checkpoint: str, name: str, settings: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A checkpoint's description, and all settings of the method on it."""
    if name not in METHODS:
        raise InputError(f"no method {name!r}{nearest(name, METHODS)}")
    described, given = description(checkpoint), json.loads(settings)
    if not METHODS[name].has_branch:
        return described, method_settings(method_from({"name": name, **given}))
    if described["method"]["name"] != name:
        raise InputError(f"{name} needs a checkpoint trained for it; {checkpoint} is for {described['method']['name']}")
    method = method_from(described["method"] | given)
    _check_branch(method, method_from(described["method"]), checkpoint)
    return described, method_settings(method)


def _check_branch(method: Method, own: Method, checkpoint: str) -> None:
    other = [name for name in method.branch_settings if getattr(own, name) != getattr(method, name)]
    if other:
        raise InputError(f"{checkpoint} was trained with another {', '.join(other)}; train one with these settings")


def _scenes(grid: Grid) -> list[list[Scene]]:
    """One list of scenes for each severity; clean images come once, first."""
    pictures = _pictures(grid)
    names = [name for given in grid.corruptions for name in NAMES.get(given, (given,))]
    for name in names:
        if name not in (CLEAN, *CORRUPTIONS, *EXTRA):
            raise InputError(f"no corruption {name!r}{nearest(name, [CLEAN, *NAMES, *CORRUPTIONS, *EXTRA])}")
    _once(names, "corruption")
    digest = pictures.draw().digest
    lists = [[Scene(pictures, digest)]] if CLEAN in names else []
    shifts = [name for name in names if name != CLEAN]
    if shifts:
        lists += [[Scene(pictures, digest, name, sev, grid.constants) for name in shifts] for sev in grid.severities]
    return lists


def _groups(scenes: Sequence[Scene], grid: Grid) -> Iterator[tuple[tuple[Scene, ...], list[str]]]:
    """Scenes one by one for the protocols that forget between them, all together for those that do not."""
    asked = {protocol for entry in grid.methods for protocol in entry.protocols or grid.protocols}
    alone = [protocol for protocol in PROTOCOLS if protocol in asked and protocol not in SEQUENCES]
    together = [protocol for protocol in SEQUENCES if protocol in asked]
    for scene in scenes:
        yield (scene,), alone
    if scenes[0].corruption != CLEAN:
        yield tuple(scenes), together


def _check_lists(grid: Grid) -> None:
    lists: dict[str, Sequence[Any]] = {
        "methods": grid.methods,
        "corruptions": grid.corruptions,
        "severities": grid.severities,
        "protocols": grid.protocols,
        "orders": grid.orders,
        "batch_sizes": grid.batch_sizes,
        "seeds": grid.seeds,
    }
    for name, values in lists.items():
        if not values:
            raise InputError(f"a grid needs at least one of its {name}; found none")
        if name != "methods":
            _once(values, name)
    for name, values, least in (("batch_sizes", grid.batch_sizes, 1), ("seeds", grid.seeds, 0)):
        for value in values:
            if value < least:
                raise InputError(f"{name} must be at least {least}; found {value}")
    for severity in grid.severities:
        if severity not in SEVERITIES:
            raise InputError(f"severities go from 1 to 5; found {severity!r}")
    if grid.threads < 1:
        raise InputError(f"threads must be at least 1; found {grid.threads}")
    for protocol in [*grid.protocols, *(p for entry in grid.methods for p in entry.protocols or ())]:
        if protocol not in PROTOCOLS:
            raise InputError(f"no protocol {protocol!r}{nearest(protocol, PROTOCOLS)}")
    for order in grid.orders:
        check_order(order)
    for steps in (grid.steps, *(entry.steps for entry in grid.methods)):
        if steps is not None and (not steps or steps != sorted(set(steps)) or steps[0] < 0):
            raise InputError(f"step counts must rise, as in [0, 1, 5, 20]; found {steps}")


def _check_classes(grid: Grid, entry: Entry) -> None:
    classes = _pictures(grid).draw().classes
    for checkpoint in checkpoints_of(entry):
        architecture = description(checkpoint)["architecture"]
        if architecture is None:
            raise InputError(f"{checkpoint} holds a network of its author's own, which a grid cannot build")
        found = architecture.get("num_classes", classes)
        if found != classes:
            raise InputError(f"{checkpoint} tells {found} classes apart; {grid.data} has {classes}")


def _check_conflicts(cells: Iterable[Cell]) -> None:
    """One row a cell, and one meaning for each name in a table."""
    by_key: dict[str, Cell] = {}
    by_name: dict[tuple, Cell] = {}
    for cell in cells:
        columns = cell.columns() | {"settings": None, "stop": None}
        other = by_key.setdefault(cell.key, cell)
        if other is not cell:
            raise InputError(f"{other.label!r} and {cell.label!r} are the same on {cell.checkpoint}; leave one out")
        other = by_name.setdefault(tuple(columns.items()), cell)
        if other is not cell:
            raise InputError(
                f"two entries are called {cell.label!r} on {cell.checkpoint}; give each a label of its own"
            )


def _once(values: Sequence[Any], name: str) -> None:
    twice = [value for value in values if values.count(value) > 1]
    if twice:
        raise InputError(f"{name} {twice[0]!r} is named twice")
