"""What `ncttt bench` and its relatives print: tables."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ncttt.benchmark.attribution import Attribution
    from ncttt.benchmark.tuning.trials import TrialResult


def show_rows(rows: Sequence[dict[str, Any]]) -> None:
    """Rows, mean over corruptions."""
    from ncttt.benchmark.summary import summarise, summary_table  # torch, which help does without

    show(*summary_table(summarise(rows)))


def show_attributions(attributions: Sequence[Attribution]) -> None:
    """The shares of gains."""
    from ncttt.benchmark.summary import attribution_table  # torch, which help does without

    show(*attribution_table(attributions))


def show_trials(trials: Sequence[TrialResult], confirmed: Sequence[TrialResult]) -> None:
    """The best trials of a tuning, and those on fresh images beside them."""
    from ncttt.benchmark.summary import search_table  # torch, which help does without

    show(*search_table(trials, confirmed))


def show(headers: Sequence[str], body: Sequence[Sequence[str]]) -> None:
    """A table on a terminal; lines with tabs when piped."""
    if not sys.stdout.isatty():
        for line in (headers, *body):
            print("\t".join(line))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table()
    for number, header in enumerate(headers):
        table.add_column(header, justify="left" if number < 2 else "right")
    for line in body:
        table.add_row(*line)
    Console().print(table)
