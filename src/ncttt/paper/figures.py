"""A figure of the paper again, from the plan's models and rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ncttt.benchmark.rows import write_csv
from ncttt.paper.items import Item
from ncttt.paper.measuring import measured_rows, prepare
from ncttt.paper.needs import needs_of, provide
from ncttt.paper.plan import Plan, read_plan
from ncttt.paper.search import run_search, searched_trainings
from ncttt.paper.settings import Settings
from ncttt.paper.trainings import train_missing
from ncttt.report.figures.gallery import draw_figures

Tell = Callable[[str], None]


def draw_item(item: Item, settings: Settings, tell: Tell) -> list[Path]:
    """Draw a figure as SVG and PNG."""
    assert item.figure is not None
    request = {} if item.plan is None else _request(item, read_plan(item.plan, settings.scale), settings, tell)
    drawings = draw_figures([item.figure], settings.home / item.name, **request)
    return [path for drawing in drawings for path in drawing.files]


def _request(item: Item, plan: Plan, settings: Settings, tell: Tell) -> dict[str, Any]:
    """What `ncttt figures` draws it from: rows, trials, or a model and images."""
    if item.figure == "layers":
        asked = searched_trainings(plan, settings)
        provide(needs_of(plan, asked, settings.root), settings.root, tell)
        first = [training for training in asked if training.model != plan.search["model"]]
        train_missing(first, device=settings.device, running=settings.running, tell=tell)
        return {"trials": str(run_search(plan, settings, tell))}
    if item.figure == "iterations":
        rows = settings.home / f"{item.name}.csv"
        write_csv(measured_rows(item, plan, settings, tell), rows)
        return {"rows": str(rows)}
    prepare(item, plan, settings, tell)
    own = next(column for column in plan.columns if column.method == "nc_ttt")
    model = plan.checkpoint(own.model, settings.seeds_of(plan)[0], settings.home)
    request = {"model": model, "data": plan.data, "root": settings.root}
    return request if settings.images is None else request | {"images": settings.images}
