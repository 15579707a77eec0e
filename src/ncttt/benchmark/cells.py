"""From a grid to its cells: names looked up, methods made, what contradicts itself refused, nothing computed yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from ncttt.adapt.protocols import PROTOCOLS
from ncttt.base.errors import InputError
from ncttt.benchmark.calibration import calibration_for
from ncttt.benchmark.cell import Cell
from ncttt.benchmark.draws import SEED, DrawnImages, ImageDraw
from ncttt.benchmark.grid import Entry, Grid
from ncttt.benchmark.grid_checks import check_grid, check_once, sizes_of_batches
from ncttt.benchmark.image_sizes import sized
from ncttt.benchmark.rows import was_read
from ncttt.benchmark.scenarios import CLEAN, Scenario
from ncttt.benchmark.stored_corruptions import lies_ready, stored_scenarios
from ncttt.benchmark.stream_checks import check_long_enough
from ncttt.data import data_root
from ncttt.data.class_names import check_same_classes
from ncttt.data.corruptions import expand_corruptions, table_for
from ncttt.data.loading import check_request
from ncttt.data.orders import parse_order
from ncttt.data.sequences import parse_sequence
from ncttt.data.sets.registry import is_folder
from ncttt.methods import METHODS, Method
from ncttt.methods.registry import name_of
from ncttt.methods.settings import method_from, settings_of
from ncttt.zoo.stored import description

Setup = tuple[str, str, str]  # protocol, order and sequence of domains


def cells_of(grid: Grid) -> list[Cell]:
    """The cells of a grid, scenario by scenario, so that what shares images is measured together."""
    check_grid(grid)
    cells = [cell for draw in image_draws(grid) for cell in _cells_on(grid, draw)]
    _check_conflicts(cells)
    if not cells:
        raise InputError("this grid has no cells: clean images alone make no sequence of corruptions")
    return cells


def image_draws(grid: Grid) -> list[ImageDraw]:
    """The images of a grid, set by set, in places that do not depend on the folder a process runs in."""
    names = [grid.data] if isinstance(grid.data, str) else grid.data
    check_once(names, "data")
    folders = [str(Path(name).absolute()) if is_folder(name) else None for name in names]
    root = str(data_root(grid.root).absolute())
    chosen = zip(names, folders, strict=True)
    draws = [ImageDraw(name, grid.split, grid.images, grid.skip, root, folder) for name, folder in chosen]
    checkpoints = [name for entry in grid.entries for name in checkpoints_of(entry)]
    return [draw if lies_ready(draw) else sized(draw, grid, checkpoints) for draw in draws]


def _cells_on(grid: Grid, draw: ImageDraw) -> Iterator[Cell]:
    lists = _scenarios(grid, draw)
    drawn = lists[0][0].draw.read()
    entries = [(entry.protocols or grid.protocols, _templates(grid, entry, draw, drawn)) for entry in grid.entries]
    images = len(drawn.labels)
    sizes = sizes_of_batches(grid, images, draw.data)
    protocols = sorted({name for names, _ in entries for name in names}, key=_place_of)
    for scenarios, setups in _streams(lists, list(product(protocols, grid.orders, grid.sequences))):
        for (protocol, order, sequence), size, seed in product(setups, sizes, grid.seeds):
            setup = {"protocol": protocol, "order": order, "sequence": sequence, "batch_size": size, "seed": seed}
            for template in (one for names, templates in entries if protocol in names for one in templates):
                method, length = method_from(template.method), {"images": images, "batch_size": size}
                check_long_enough(method, protocol, order, domains=len(scenarios), **length)
                yield replace(template, scenarios=scenarios, **setup)


def _place_of(protocol: str) -> tuple[int, str]:
    built_in = list(PROTOCOLS)
    return (built_in.index(protocol) if protocol in built_in else len(built_in), protocol)


def _templates(grid: Grid, entry: Entry, draw: ImageDraw, drawn: DrawnImages) -> list[Cell]:
    """A cell of an entry on each of its checkpoints, still without scenarios and a setup."""
    templates = []
    for checkpoint in checkpoints_of(entry):
        described = description(checkpoint)
        _check_fit(described, checkpoint, drawn, draw.data)
        method = method_of(entry, described, checkpoint)
        steps = steps_of(grid, entry, method)
        template = Cell(
            scenarios=(),
            method=settings_of(method) | {"steps": steps[-1]},
            label=entry.label or entry.method,
            checkpoint=checkpoint,
            folder=str(Path(checkpoint).absolute()) if Path(checkpoint).is_dir() else checkpoint,
            weights=described["weights_sha256"],
            steps=steps,
            stop=entry.stop,
            threads=grid.threads,
            device=grid.device,
            fast=grid.fast,
            calibration=calibration_for(type(method), draw),
        )
        templates.append(template)
    return templates


def _streams(
    lists: Sequence[Sequence[Scenario]], setups: Sequence[Setup]
) -> Iterator[tuple[tuple[Scenario, ...], Sequence[Setup]]]:
    """Scenarios one by one for the setups that forget between them, all of a severity together for the others.

    A sequence other than `once` makes one stream of them, whenever the method forgets.
    """
    once = [setup for setup in setups if setup[2] == "once"]
    together = [setup for setup in once if PROTOCOLS[setup[0]].crosses_domains or parse_order(setup[1]).mixed]
    alone = [setup for setup in once if setup not in together]
    for scenarios in lists:
        for scenario in scenarios:
            yield (scenario,), alone
        if scenarios[0].corruption != CLEAN:
            yield tuple(scenarios), together
            for sequence in dict.fromkeys(setup[2] for setup in setups if setup not in once):
                yield _in_sequence(scenarios, sequence), [setup for setup in setups if setup[2] == sequence]


def _in_sequence(scenarios: Sequence[Scenario], sequence: str) -> tuple[Scenario, ...]:
    """The scenarios of a stream, from those of its highest severity."""
    if was_read(scenarios[0].constants):
        raise InputError(f"the sequence {sequence!r} needs clean images to corrupt; these are corrupted already")
    by_name = {scenario.corruption: scenario for scenario in scenarios}
    domains = parse_sequence(sequence).domains(list(by_name), scenarios[0].severity)
    return tuple(
        scenarios[0].clean if name == CLEAN else replace(by_name[name], severity=severity) for name, severity in domains
    )


def _scenarios(grid: Grid, draw: ImageDraw) -> list[list[Scenario]]:
    """One list of scenarios for each severity; clean images come once, first."""
    names = expand_corruptions(grid.corruptions)
    if lies_ready(draw):
        return stored_scenarios(grid, draw, names)
    drawn = draw.read()
    _, height, width, _ = drawn.images.shape
    table = table_for(height, width, grid.constants)
    shifts = [name for name in names if name != CLEAN]
    lists = [[Scenario(draw, drawn.digest)]] if CLEAN in names else []
    for name, level in product(shifts, grid.severities):
        check_request(drawn.images.shape, name, level, SEED)
    if shifts:
        lists += [[Scenario(draw, drawn.digest, name, level, table) for name in shifts] for level in grid.severities]
    return lists


def _check_fit(described: dict[str, Any], checkpoint: str, drawn: DrawnImages, data: str) -> None:
    architecture = described["architecture"]
    if architecture is None:
        raise InputError(f"{checkpoint} holds a network of its author's own, which a grid cannot build")
    classes = architecture.get("num_classes", len(drawn.classes))
    if classes != len(drawn.classes):
        raise InputError(f"{checkpoint} tells {classes} classes apart; {data} has {len(drawn.classes)}")
    check_same_classes(described.get("classes"), drawn.classes, checkpoint, data)
    (_, *sides), (_, height, width, _) = described["input_shape"], drawn.images.shape
    if sides != [height, width]:
        raise InputError(
            f"{checkpoint} was made for images of {sides[0]}x{sides[1]}; those of {data} are {height}x{width}"
        )


def _check_conflicts(cells: Iterable[Cell]) -> None:
    """One row a cell, and one meaning for each name in a table."""
    by_key: dict[str, Cell] = {}
    by_name: dict[tuple, Cell] = {}
    for cell in cells:
        other = by_key.setdefault(cell.key, cell)
        if other is not cell:
            raise InputError(f"{other.label!r} and {cell.label!r} are the same on {cell.checkpoint}; leave one out")
        columns = cell.columns() | {"settings": None, "stop": None}
        if by_name.setdefault(tuple(columns.items()), cell) is not cell:
            raise InputError(
                f"two entries are called {cell.label!r} on {cell.checkpoint}; give each a label of its own"
            )


def checkpoints_of(entry: Entry) -> list[str]:
    """The checkpoints of an entry, however many there are."""
    checkpoints = [entry.checkpoint] if isinstance(entry.checkpoint, str) else entry.checkpoint
    if not checkpoints:
        raise InputError(f"{entry.label or entry.method} has no checkpoint")
    return checkpoints


def method_of(entry: Entry, described: dict[str, Any], checkpoint: str) -> Method:
    """The method of an entry with the settings of its checkpoint, if it was trained for it, and its own."""
    name, own = entry.method, described["method"]
    kind = METHODS.find(name)
    if kind.needs_training() and own["name"] != name_of(kind):
        raise InputError(f"{name} needs a checkpoint trained for it; {checkpoint} is for {own['name']}")
    base = own if kind.needs_training() else {"name": name}
    method = method_from(base, **entry.settings)
    trained = method_from(base)
    other = [key for key in method.branch_settings if getattr(trained, key) != getattr(method, key)]
    if other:
        raise InputError(f"{checkpoint} was trained with another {', '.join(other)}; train one with these settings")
    check_stop(entry.stop, kind)
    return method


def check_stop(stop: str | float | None, kind: type[Method]) -> None:
    """Raise unless a method of this kind can stop by it."""
    if stop is None or stop == "source":
        return
    if isinstance(stop, str):
        raise InputError(f"stop must be 'source', a level of the score or nothing; found {stop!r}")
    if kind.score is Method.score:
        raise InputError(f"a level to stop at needs a method with a score, such as nc_ttt; found {kind.name}")


def steps_of(grid: Grid, entry: Entry, method: Method) -> tuple[int, ...]:
    """Step counts: the entry's own, or its setting, or the grid's, or the method's; none for what cannot learn."""
    if not method.learns:
        return (method.steps,)
    own = entry.settings.get("steps")
    if entry.steps and own not in (None, entry.steps[-1]):
        raise InputError(
            f"{entry.label or entry.method} has steps {entry.steps} and the setting steps={own}; leave one out"
        )
    if entry.steps or own is not None:
        return tuple(entry.steps or [method.steps])
    return tuple(grid.steps or [method.steps])
