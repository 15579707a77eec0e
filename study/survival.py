"""The tables of who survives what: methods by kind of stream and by batch size, from the rows of the field's grids.

    python study/survival.py > results/tables/survival.md

Continual streams through five corruptions at severity 5, 256 images a domain: each corruption once
(study/field_batches), and each twice, in random order and with correlated labels (study/field_recurring).
"""

from pathlib import Path

from ncttt.benchmark import read_rows
from ncttt.report import survival_tables
from ncttt.report.rendering.markdown import as_markdown

RESULTS = Path(__file__).resolve().parents[1] / "results"
ROWS = {
    "Each corruption once": "cifar10c_field_batches.csv",
    "Each corruption twice": "cifar10c_field_recurring.csv",
}


def table() -> str:
    """The table of each file as Markdown, with a heading."""
    parts = []
    for heading, name in ROWS.items():
        (found,) = survival_tables(read_rows(RESULTS / name))
        parts.append(f"## {heading}\n\n{as_markdown(found)}")
    return "\n".join(parts)


if __name__ == "__main__":
    print(table())
