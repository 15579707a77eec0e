"""`ncttt paper`: the tables and figures of the NC-TTT paper, each by one command."""

from __future__ import annotations

import sys
from typing import Any

from ncttt import paper as the_paper
from ncttt import report
from ncttt.paper.settings import Settings

EXAMPLE = ("ncttt paper table1 --images 256", "ncttt paper all --scale paper --dry-run")
GROUP = "measure"


def paper(names: list[str], *, dry_run: bool = False, configs: str | None = None, **settings: Any) -> None:
    """Reproduce tables and figures of the paper: data, trainings, measurements; after a kill, it continues.

    Args:
        names: table1 to table7, figure2 to figure8, or all.
        dry_run: Only show the plan: data, trainings and cells, what is there already, and the least time.
        configs: Only write the configuration of each training to this folder, for `ncttt train --config` and torchrun.
    """
    asked, items = Settings(**settings), the_paper.chosen_items(names)
    if configs is not None:
        print(*the_paper.write_configurations(items, asked, configs), sep="\n")
    elif dry_run:
        report.show(the_paper.outline(items, asked))
        for line in the_paper.missing(items, asked):
            _tell(line)
    else:
        the_paper.reproduce(names, asked, done=_show, tell=_tell)


def _show(result: the_paper.Result) -> None:
    if result.table is not None:
        report.show(result.table)
    print(*result.files, sep="\n")


def _tell(line: str) -> None:
    print(f"ncttt: {line}", file=sys.stderr, flush=True)
