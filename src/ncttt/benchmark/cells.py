"""From a grid to its cells: names looked up, what contradicts itself refused, nothing computed yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from ncttt.base.errors import InputError, nearest
from ncttt.benchmark.cell import PROTOCOLS, SEQUENCES, Cell
from ncttt.benchmark.grid import Entry, Grid
from ncttt.benchmark.grid_checks import check_grid, check_once
from ncttt.benchmark.scenes import CLEAN, Drawn, Pictures, Scene
from ncttt.data import DATA_SETS, data_root
from ncttt.data.corruptions import CORRUPTIONS, EXTRA, table_for
from ncttt.methods import METHODS, Method
from ncttt.methods.settings import method_from, settings_of
from ncttt.zoo.checkpoint import description

NAMES = {"all": CORRUPTIONS, "extra": EXTRA}


class Model(NamedTuple):
    """A method with all its settings on a checkpoint, and the step counts to predict after."""

    label: str
    checkpoint: str
    folder: str
    weights: str
    method: dict[str, Any]
    steps: tuple[int, ...]
    stop: str | float | None
    protocols: Sequence[str]


def cells_of(grid: Grid) -> list[Cell]:
    """The cells of a grid, scene by scene, so that what shares images is measured together."""
    check_grid(grid)
    cells = [cell for pictures in pictures_of(grid) for cell in _cells_on(grid, pictures)]
    _check_conflicts(cells)
    if not cells:
        raise InputError("this grid has no cells: clean images alone make no sequence of corruptions")
    return cells


def pictures_of(grid: Grid) -> list[Pictures]:
    """The images of a grid, set by set, in places that do not depend on the folder a process runs in."""
    names = [grid.data] if isinstance(grid.data, str) else grid.data
    check_once(names, "data")
    folders = [str(Path(name).absolute()) if name not in DATA_SETS and Path(name).is_dir() else None for name in names]
    root = str(data_root(grid.root).absolute())
    chosen = zip(names, folders, strict=True)
    return [Pictures(name, grid.split, grid.images, grid.skip, root, folder) for name, folder in chosen]


def _cells_on(grid: Grid, pictures: Pictures) -> Iterator[Cell]:
    models = [model for entry in grid.methods for model in _models(grid, entry, pictures)]
    for scenes, protocols in _groups(_scenes(grid, pictures), models):
        for protocol, order, batch, seed in product(protocols, grid.orders, grid.batch_sizes, grid.seeds):
            for model in models:
                if protocol in model.protocols:
                    yield _cell(grid, model, scenes, protocol=protocol, order=order, batch_size=batch, seed=seed)


def checkpoints_of(entry: Entry) -> list[str]:
    """The checkpoints of an entry, however many there are."""
    found = [entry.checkpoint] if isinstance(entry.checkpoint, str) else entry.checkpoint
    if not found:
        raise InputError(f"{entry.label or entry.method} has no checkpoint")
    return found


def corruption_names(given: Iterable[str]) -> list[str]:
    """Corruptions by their names, those of a group one by one."""
    names = [name for word in given for name in NAMES.get(word, (word,))]
    for name in names:
        if name not in (CLEAN, *CORRUPTIONS, *EXTRA):
            raise InputError(f"no corruption {name!r}{nearest(name, [CLEAN, *NAMES, *CORRUPTIONS, *EXTRA])}")
    check_once(names, "corruption")
    return names


def _cell(grid: Grid, model: Model, scenes: tuple[Scene, ...], **rest: Any) -> Cell:
    named = {name: value for name, value in model._asdict().items() if name != "protocols"}
    return Cell(scenes=scenes, threads=grid.threads, device=grid.device, **named, **rest)


def _models(grid: Grid, entry: Entry, pictures: Pictures) -> Iterator[Model]:
    for checkpoint in checkpoints_of(entry):
        described = description(checkpoint)
        _check_fit(described, checkpoint, pictures.draw(), pictures.data)
        method = _method(entry, described, checkpoint)
        counts = _counts(grid, entry, method)
        yield Model(
            entry.label or entry.method,
            checkpoint,
            str(Path(checkpoint).absolute()) if Path(checkpoint).is_dir() else checkpoint,
            described["weights_sha256"],
            settings_of(method) | {"steps": counts[-1]},
            counts,
            entry.stop,
            entry.protocols or grid.protocols,
        )


def _method(entry: Entry, described: dict[str, Any], checkpoint: str) -> Method:
    """The method of an entry with the settings of its checkpoint, if it was trained for it, and its own."""
    name, own = entry.method, described["method"]
    if name not in METHODS:
        raise InputError(f"no method {name!r}{nearest(name, METHODS)}")
    if METHODS[name].has_branch and own["name"] != name:
        raise InputError(f"{name} needs a checkpoint trained for it; {checkpoint} is for {own['name']}")
    base = own if METHODS[name].has_branch else {"name": name}
    method = method_from(base, **entry.settings)
    trained = method_from(base)
    other = [key for key in method.branch_settings if getattr(trained, key) != getattr(method, key)]
    if other:
        raise InputError(f"{checkpoint} was trained with another {', '.join(other)}; train one with these settings")
    check_stop(entry.stop, type(method))
    return method


def check_stop(stop: str | float | None, kind: type[Method]) -> None:
    """Raise unless a method of this kind can stop by it."""
    if stop is None or stop == "source":
        return
    if isinstance(stop, str):
        raise InputError(f"stop must be 'source', a level of the score or nothing; found {stop!r}")
    if kind.score is Method.score:
        raise InputError(f"a level to stop at needs a method with a score, such as nc_ttt; found {kind.name}")


def _counts(grid: Grid, entry: Entry, method: Method) -> tuple[int, ...]:
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


def _scenes(grid: Grid, pictures: Pictures) -> list[list[Scene]]:
    """One list of scenes for each severity; clean images come once, first."""
    names, drawn = corruption_names(grid.corruptions), pictures.draw()
    _, height, width, _ = drawn.images.shape
    table = table_for(height, width, grid.constants)
    shifts = [name for name in names if name != CLEAN]
    lists = [[Scene(pictures, drawn.digest)]] if CLEAN in names else []
    if shifts:
        lists += [[Scene(pictures, drawn.digest, name, level, table) for name in shifts] for level in grid.severities]
    return lists


def _groups(
    lists: Sequence[Sequence[Scene]], models: Sequence[Model]
) -> Iterator[tuple[tuple[Scene, ...], Sequence[str]]]:
    """Scenes one by one for the protocols that forget between them, all together for those that do not."""
    asked = {protocol for model in models for protocol in model.protocols}
    alone = [protocol for protocol in PROTOCOLS if protocol in asked and protocol not in SEQUENCES]
    together = [protocol for protocol in SEQUENCES if protocol in asked]
    for scenes in lists:
        for scene in scenes:
            yield (scene,), alone
        if scenes[0].corruption != CLEAN:
            yield tuple(scenes), together


def _check_fit(described: dict[str, Any], checkpoint: str, drawn: Drawn, data: str) -> None:
    architecture = described["architecture"]
    if architecture is None:
        raise InputError(f"{checkpoint} holds a network of its author's own, which a grid cannot build")
    found = architecture.get("num_classes", drawn.classes)
    if found != drawn.classes:
        raise InputError(f"{checkpoint} tells {found} classes apart; {data} has {drawn.classes}")
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
