"""The table of a tuning: settings, their accuracy and the gain of their steps, and the same on fresh images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ncttt.report.attribution import in_points
from ncttt.report.table import Cell, Number, Table, table_of

if TYPE_CHECKING:
    from ncttt.benchmark.tuning.trials import TrialResult


def tuning_table(trials: Sequence[TrialResult], confirmed: Sequence[TrialResult] = ()) -> Table:
    """Measured trials in their order; `confirmed` are those that were measured again on fresh images."""
    again = {repr(measured.trial.settings): measured for measured in confirmed}
    headers = ["settings", "accuracy %", "gain of the steps", *(["on fresh images", "gain there"] if again else [])]
    body = []
    for measured in trials:
        settings = measured.trial.settings
        cells = [*_cells(measured), *_cells(again.get(repr(settings)))]
        name = " ".join(f"{name}={value}" for name, value in settings.items()) or "as it is"
        body.append([name, *cells[: len(headers) - 1]])
    return table_of(headers, body)


def _cells(measured: TrialResult | None) -> list[Cell]:
    return [Number(100 * measured.accuracy), in_points(measured.gain)] if measured else ["", ""]
