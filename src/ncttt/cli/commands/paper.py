"""`ncttt paper`: the tables and figures of the NC-TTT paper, each by one command."""

import sys
from typing import Any

from ncttt import paper as the_paper
from ncttt import report
from ncttt.paper.settings import Settings

EXAMPLE = ("ncttt paper table1 --images 256", "ncttt paper all --scale paper --dry-run")
GROUP = "measure"


def paper(names: list[str], *, dry_run: bool = False, **settings: Any) -> None:
    """Reproduce tables and figures of the paper: data, trainings, measurements; killed, it goes on where it was.

    Args:
        names: table1 to table7, figure2 to figure8, or all.
        dry_run: Only show the plan: data, trainings and cells, what is there already, and the least time.
    """
    asked = Settings(**settings)
    if dry_run:
        report.show(the_paper.outline(the_paper.chosen_items(names), asked))
    else:
        the_paper.reproduce(names, asked, done=_show, tell=_tell)


def _show(result: the_paper.Result) -> None:
    if result.table is not None:
        report.show(result.table)
    print(*result.files, sep="\n")


def _tell(line: str) -> None:
    print(f"ncttt: {line}", file=sys.stderr, flush=True)
