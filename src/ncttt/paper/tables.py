"""A table of the paper again: our means beside the paper's, every corruption in files, and where gains come from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ncttt.base.files import replace_file
from ncttt.base.provenance import origin
from ncttt.paper.items import Item
from ncttt.paper.measuring import Row
from ncttt.paper.plan import Plan
from ncttt.paper.settings import Settings
from ncttt.report.accuracy import Measurements, corruptions_only, measurements
from ncttt.report.names import Column, spelled_method
from ncttt.report.paper import vs_paper
from ncttt.report.paper.comparison import paper_mean_of
from ncttt.report.rendering import render
from ncttt.report.shares import shares_of_rows
from ncttt.report.table import Line, Number, Table, average

FILES = {"md": "markdown", "tex": "latex"}


def means_table(item: Item, plan: Plan, rows: Sequence[Row], settings: Settings) -> Table:
    """Of each column our mean over corruptions, the paper's, the difference, and how long an image took."""
    (measured,) = measurements(_columns_only(plan, rows))
    lines = [Line(spelled_method(column.label), _cells(measured, column, plan)) for column in measured.names]
    columns = ("ours", "paper", "difference", "ms an image")
    return Table(f"{item.name}: {item.title}", "method", columns, tuple(lines), notes=_notes(plan, rows, settings))


def write_table(item: Item, plan: Plan, rows: Sequence[Row], settings: Settings) -> tuple[Table, list[Path]]:
    """The table of means, and the files of all tables: Markdown, LaTeX, and CSV of the comparison."""
    means = means_table(item, plan, rows, settings)
    compared = vs_paper(_columns_only(plan, rows), data=plan.stands_for)
    gains = gains_table(rows)
    home = settings.home
    written = {home / f"{item.name}.{end}": render([means, *compared, gains], form) for end, form in FILES.items()}
    written[home / f"{item.name}.csv"] = render(compared[0], "csv")
    for path, text in written.items():
        replace_file(path, text.encode())
    return means, list(written)


def gains_table(rows: Sequence[Row]) -> Table:
    """On one checkpoint each: accuracy with source statistics, what batch statistics add, and what the steps add."""
    lines = [
        Line(
            spelled_method(share.method),
            (Number(share.source), Number(share.statistics, signed=True), Number(share.steps, signed=True)),
        )
        for share in shares_of_rows(rows)
    ]
    notes = ("Accuracy (%) and gains in points, each on the method's own model.",)
    return Table("Where the gain comes from", "method", ("source", "statistics", "steps"), tuple(lines), notes=notes)


def _columns_only(plan: Plan, rows: Sequence[Row]) -> list[Row]:
    """Without source and PTBN on the models of other methods."""
    wanted = {(column.label or column.method, column.model) for column in plan.columns}
    return [row for row in rows if (row["method"], row["checkpoint"]) in wanted]


def _cells(measured: Measurements, column: Column, plan: Plan) -> tuple[Number | None, ...]:
    shifts = corruptions_only(measured.corruptions) or measured.corruptions
    ours = measured.mean(column, shifts)
    theirs = paper_mean_of(plan.stands_for or measured.data, measured.axes["severity"], shifts, column.label)
    difference = None if ours is None or theirs is None else Number(ours.mean - theirs, signed=True)
    own = [row for row in measured.rows if row["method"] == column.label and row["checkpoint"] == column.checkpoint]
    time = Number(average(1000 / row["images_per_second"] for row in own))
    return ours, None if theirs is None else Number(theirs), difference, time


def _notes(plan: Plan, rows: Sequence[Row], settings: Settings) -> tuple[str, ...]:
    first: dict[str, Any] = dict(rows[0])
    made = {"published": "the published corrupted images", None: "the images as they are"}
    images = made.get(first["constants"], f"images corrupted here ({first['constants']})")
    where = origin()
    notes = [
        f"Scale {settings.scale}: {first['images']} images of {first['data']} each, {images}; batches of "
        f"{first['batch_size']}, weights restored after each; seeds {', '.join(map(str, settings.seeds_of(plan)))}.",
        f"Commit {where['commit']}, {where['machine']}, {where['versions']}.",
    ]
    if plan.stands_for:
        notes.append(f"{plan.data} stands for the paper's {plan.stands_for}: compare gains, not accuracies.")
    elif settings.scale == "small":
        notes.append("The paper's network is ResNet-50: compare gains on one checkpoint, not accuracies.")
    return tuple(notes)
