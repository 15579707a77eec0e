"""Tables and figures of the paper, one after another; killed, it goes on where it was."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ncttt.base.devices import available
from ncttt.benchmark.executors import EXECUTORS
from ncttt.paper.figures import draw_item
from ncttt.paper.items import Item, chosen_items
from ncttt.paper.measuring import measured_rows
from ncttt.paper.plan import read_plan
from ncttt.paper.settings import Settings
from ncttt.paper.tables import write_table
from ncttt.report.table import Table


@dataclass(frozen=True)
class Result:
    """What came of a table or a figure: its files, and of a table its means beside the paper's."""

    item: Item
    files: list[Path]
    table: Table | None = None


def reproduce(
    names: Sequence[str],
    settings: Settings | None = None,
    *,
    done: Callable[[Result], None] = lambda result: None,
    tell: Callable[[str], None] = lambda line: None,
) -> list[Result]:
    """Provide data, train what is missing, measure and render; `done` is called with each result.

    `tell` is called with what is being done, a line at a time.
    """
    asked = settings or Settings()
    available(asked.device)  # asked before anything is fetched or trained
    EXECUTORS.find(asked.executor)
    results = []
    for item in chosen_items(names):
        results.append(_result(item, asked, tell))
        done(results[-1])
    return results


def _result(item: Item, settings: Settings, tell: Callable[[str], None]) -> Result:
    settings.home.mkdir(parents=True, exist_ok=True)
    if item.figure is not None or item.plan is None:
        return Result(item, draw_item(item, settings, tell))
    plan = read_plan(item.plan, settings.scale)
    table, files = write_table(item, plan, measured_rows(item, plan, settings, tell), settings)
    return Result(item, files, table)
