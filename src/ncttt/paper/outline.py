"""What a table or a figure will take: data, trainings and cells, which of them are there, and the least time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from time import perf_counter

from ncttt.base.errors import InputError
from ncttt.benchmark.cells import cells_of
from ncttt.benchmark.store import Store
from ncttt.data.corruptions import expand_corruptions
from ncttt.paper.items import Item
from ncttt.paper.measuring import columns_of, grids_of, store_of, trainings_of
from ncttt.paper.needs import Need, needs_of
from ncttt.paper.plan import Plan, read_plan, still_columns
from ncttt.paper.search import searched_trainings
from ncttt.paper.settings import Settings
from ncttt.paper.trainings import Training
from ncttt.report.table import Line, Table

TIMED = 8  # images of the pass that is timed


def outline(items: Sequence[Item], settings: Settings) -> Table:
    """A line for each table and figure: data, trainings, cells, and the least time on this machine.

    The time is that of a forward and a backward pass of the network for each image and step, timed here on a few
    images: methods take more. What several items share is counted in each.
    """
    lines = [Line(item.name, _cells(item, settings)) for item in items]
    columns = ("shows", "data", "trainings", "cells", "at least")
    return Table(f"Scale {settings.scale}", "item", columns, tuple(lines))


def missing(items: Sequence[Item], settings: Settings) -> list[str]:
    """What is not here yet, and how it gets here."""
    return list(dict.fromkeys(note for item in items for note in _missing(item, settings)))


def _cells(item: Item, settings: Settings) -> tuple[str, ...]:
    if item.plan is None:
        return item.title, "none", "none", "none", "seconds"
    plan = read_plan(item.plan, settings.scale)
    asked = _asked(item, plan, settings)
    needs = ", ".join(f"{need.name} ({'here' if need.here else 'missing'})" for need in _needs(item, plan, settings))
    done, total = _counted(item, plan, settings)
    seconds = sum(_training_seconds(one, plan, settings) for one in asked)
    seconds += (total - done) * _cell_seconds(plan, settings)
    return item.title, needs, _states(asked), f"{done} of {total} done", _spelled(seconds)


def _asked(item: Item, plan: Plan, settings: Settings) -> list[Training]:
    if item.figure == "layers":
        return searched_trainings(plan, settings)
    return trainings_of(item, plan, settings)


def _needs(item: Item, plan: Plan, settings: Settings) -> list[Need]:
    return needs_of(plan, _asked(item, plan, settings), settings.root)


def _missing(item: Item, settings: Settings) -> list[str]:
    if item.plan is None:
        return []
    plan = read_plan(item.plan, settings.scale)
    return [
        f"{need.name} is missing: {'it will be fetched' if need.fetched else need.advice}."
        for need in _needs(item, plan, settings)
        if not need.here
    ]


def _states(asked: Sequence[Training]) -> str:
    counts: dict[str, int] = {}
    for training in asked:
        counts[training.state] = counts.get(training.state, 0) + 1
    return ", ".join(f"{count} {state}" for state, count in counts.items())


def _counted(item: Item, plan: Plan, settings: Settings) -> tuple[int, int]:
    """How many cells are measured, and how many there are."""
    seeds = settings.seeds_of(plan)
    if item.figure == "tsne":
        return 0, 0
    if item.figure == "layers":  # each training with batch statistics and with steps
        scenarios = expand_corruptions(plan.search.get("corruptions", ["extra"]))
        return 0, 2 * len(searched_trainings(plan, settings)) * len(scenarios)
    columns = columns_of(item, plan)
    total = (len(columns) + len(still_columns(columns))) * len(expand_corruptions(plan.corruptions)) * len(seeds)
    if not store_of(settings).is_file():
        return 0, total
    try:
        keys = {cell.key for grid in grids_of(item, plan, settings) for cell in cells_of(grid)}
    except InputError:  # the data or a model is still missing
        return 0, total
    with Store(store_of(settings), read_only=True) as store:
        return len(keys & set(store.done())), len(keys)


def _training_seconds(training: Training, plan: Plan, settings: Settings) -> float:
    if training.state in ("ships", "done"):
        return 0.0
    return plan.learned * training.job.recipe.epochs * _pass_seconds(plan, settings)


def _cell_seconds(plan: Plan, settings: Settings) -> float:
    """Of a cell with one step for each image."""
    return (settings.images or plan.tested) * _pass_seconds(plan, settings)


def _pass_seconds(plan: Plan, settings: Settings) -> float:
    """Of a forward and a backward pass of one image through the plan's network."""
    common = plan.common
    network = tuple(sorted(common.get("network_settings", {}).items()))
    return _seconds_an_image(common.get("network", "small"), network, common.get("image_size", 32), settings.device)


@lru_cache(maxsize=16)
def _seconds_an_image(network: str, settings: tuple[tuple[str, object], ...], size: int, device: str) -> float:
    import torch  # only a timing needs it

    from ncttt.base.devices import available
    from ncttt.nets.catalogue import build

    net = build(network, **dict(settings)).train().to(available(device))
    images = torch.rand(TIMED, 3, size, size, device=device)
    net(images).sum().backward()  # which also chooses algorithms
    began = perf_counter()
    net(images).sum().backward()
    torch.cuda.synchronize(device) if images.is_cuda else None
    return (perf_counter() - began) / TIMED


def _spelled(seconds: float) -> str:
    """A time in words.

    >>> _spelled(30), _spelled(600), _spelled(90_000)
    ('seconds', '10 min', '25 h')
    """
    if seconds < 60:
        return "seconds"
    return f"{seconds / 60:.0f} min" if seconds < 2 * 3600 else f"{seconds / 3600:.0f} h"
