"""The table of who survives what: methods by kind of stream and by batch size, from the rows of the field's grids.

    python study/survival.py > results/tables/survival.md

One continual stream through five corruptions at severity 5, 256 images a domain (study/field_batches).
"""

from pathlib import Path

from ncttt.benchmark import read_rows
from ncttt.report import survival_tables
from ncttt.report.rendering.markdown import as_markdown

RESULTS = Path(__file__).resolve().parents[1] / "results"
ROWS = ("cifar10c_field_batches.csv",)


def table() -> str:
    """The table as Markdown."""
    (found,) = survival_tables([row for name in ROWS for row in read_rows(RESULTS / name)])
    return as_markdown(found)


if __name__ == "__main__":
    print(table())
