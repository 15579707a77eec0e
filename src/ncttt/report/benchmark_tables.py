"""What a benchmark gave, as tables: rows in short, the shares of gains with their intervals, the trials of a tuning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from typing import TYPE_CHECKING, Any

from ncttt.benchmark.rows import was_read
from ncttt.data.corruptions import CLEAN
from ncttt.report.names import column_of, needs_of, settings_in
from ncttt.report.table import Cell, Number, Table, average, in_points, over_seeds, table_of

if TYPE_CHECKING:
    from ncttt.benchmark.attribution import Attribution
    from ncttt.benchmark.tuning.trials import TrialResult

Row = Mapping[str, Any]
NAMED = ("data", "split", "severity", "constants", "protocol", "order", "batch_size", "method", "checkpoint", "stop")
ALWAYS = ("method", "checkpoint")  # shown even where they are the same in every line
# Rows of one line differ in corruption and seed alone.
GROUP = (*NAMED, "settings", "weights", "images_digest", "threads", "device")


def summary_table(rows: Sequence[Row]) -> Table:
    """Rows put together, in the order in which their methods first come; what is the same in all lines is left out."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(_group(row), []).append(row)
    firsts = [group[0] for group in groups.values()]
    shown = [name for name in NAMED if name in ALWAYS or _differ(name, firsts)]
    names = [["" if row.get(name) is None else str(row[name]) for name in shown] for row in firsts]
    names = [[*name, needs_of(column_of(row).method)] for name, row in zip(names, firsts, strict=True)]
    headers = [*(name.replace("_", " ") for name in shown), "needs of the source"]
    headers += ["accuracy %", "ECE", "images/s", "corruptions", "seeds"]
    return table_of(headers, [[*name, *_means(group)] for name, group in zip(names, groups.values(), strict=True)])


def _differ(name: str, rows: Sequence[Row]) -> bool:
    shown = [row for row in rows if name != "constants" or row["corruption"] != CLEAN]  # clean images have none
    return len({row.get(name) for row in shown}) > 1


def _group(row: Row) -> tuple[Any, ...]:
    # Images that lay ready have a digest for each corruption; their number stands for them.
    images = row.get("images" if was_read(row.get("constants")) else "images_digest")
    told = {**row, "images_digest": images, "settings": settings_in(row)}
    return tuple(told.get(name) for name in GROUP)


def _means(rows: Sequence[Row]) -> list[Cell]:
    seeds = sorted({row["seed"] for row in rows})
    corruptions = {row["corruption"] for row in rows}
    return [
        over_seeds([100 * average(row["accuracy"] for row in rows if row["seed"] == seed) for seed in seeds]),
        Number(average(row["ece"] for row in rows), decimals=3),
        Number(average(row["images_per_second"] for row in rows), decimals=0),
        Number(len(corruptions), decimals=0),
        Number(len(seeds), decimals=0),
    ]


def attribution_table(attributions: Sequence[Attribution]) -> Table:
    """Accuracies of each subject in each of its variants, and the shares of its gain in points, with intervals.

    `ncttt.report.shares` divides gains from rows alone, without intervals.
    """
    subjects = [asdict(attribution.subject) for attribution in attributions]
    shown = [
        name
        for name in subjects[0]
        if name in (*ALWAYS, "protocol") or len({subject[name] for subject in subjects}) > 1
    ]
    variants = list(attributions[0].accuracy)
    shares = [field.name for field in fields(attributions[0]) if field.name not in ("subject", "accuracy")]
    body = [
        [
            *(str(subject[name]) for name in shown),
            *(Number(100 * attribution.accuracy[variant]) for variant in variants),
            *(in_points(getattr(attribution, share)) for share in shares),
        ]
        for subject, attribution in zip(subjects, attributions, strict=True)
    ]
    return table_of([*(name.replace("_", " ") for name in shown), *variants, *shares], body)


def tuning_table(
    trials: Sequence[TrialResult], confirmed: Sequence[TrialResult] = (), exception: str | None = None
) -> Table:
    """Measured trials in their order; `confirmed` are those that were measured again on fresh images.

    An `exception` says why the images were not held-out ones.
    """
    again = {repr(measured.trial.settings): measured for measured in confirmed}
    headers = ["settings", "accuracy %", "gain of the steps", *(["on fresh images", "gain there"] if again else [])]
    body = []
    for measured in trials:
        settings = measured.trial.settings
        cells = [*_cells(measured), *_cells(again.get(repr(settings)))]
        name = " ".join(f"{name}={value}" for name, value in settings.items()) or "as it is"
        body.append([name, *cells[: len(headers) - 1]])
    notes = (f"Exception: {exception}.",) if exception else ()
    return replace(table_of(headers, body), notes=notes)


def _cells(measured: TrialResult | None) -> list[Cell]:
    return [Number(100 * measured.accuracy), in_points(measured.gain)] if measured else ["", ""]
