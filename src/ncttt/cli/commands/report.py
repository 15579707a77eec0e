"""`ncttt report`: rows as one page, and their tables as files."""

import json as json_module
from typing import Any

from ncttt.base.words import counted
from ncttt.report.page.report import write_report

EXAMPLE = "ncttt report runs/bench.sqlite --out runs/report"
GROUP = "show"


def report(rows: list[str], *, json: bool = False, **options: Any) -> None:
    """Write a page that shows what rows tell: one HTML file that needs no other, and the tables next to it.

    Args:
        rows: Stores of `ncttt bench`, or CSV files that `ncttt rows export` wrote; several are put together.
        json: Print what was written and what came out as JSON, for scripts.
    """
    written = write_report(rows, **options)
    if json:
        told = {"page": str(written.page), "rows": len(written.rows), "findings": written.findings}
        print(json_module.dumps(told))
    else:
        print(f"{counted(len(written.rows), 'row')} in {written.page}")
