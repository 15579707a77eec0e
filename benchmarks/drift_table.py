"""The table of docs/drift.md from the rows that `benchmarks/drift.py` wrote.

python benchmarks/drift_table.py          # fill it in
"""

import csv
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE, BEGIN, END = ROOT / "docs" / "drift.md", "<!-- drift -->\n", "<!-- / -->"
FILES = [ROOT / "results" / name for name in ("drift_cifar10.csv", "drift_pacs.csv")]
ORDER = (
    "monitor", "odder alone", "other alone", "confidence", "evidence", "features", "branch, two-sided",
    "low branch score", "shift", "KS softmax", "KS features",
)  # fmt: skip
COLUMNS = (("1", "auroc"), ("5", "auroc"), ("1", "delay"), ("5", "delay"))
HEADER = (
    "| detector | AUROC, severity 1 | 5 | delay, severity 1 | 5 | false alarms, mixed | by class "
    "| PACS: AUROC | delay | false alarms, mixed | by class |\n|---|---|---|---|---|---|---|---|---|---|---|\n"
)


def table() -> str:
    """A line for each detector: CIFAR-10 under fifteen corruptions, then PACS."""
    cifar, pacs = ([*csv.DictReader(file.open())] for file in FILES)
    return HEADER + "".join(line(name, cifar, pacs) for name in ORDER)


def line(name: str, cifar: list[dict[str, str]], pacs: list[dict[str, str]]) -> str:
    cells = [shown(cifar, "mean", name, column, severity) for severity, column in COLUMNS]
    cells += [shown(cifar, "clean", name, column, "0") for column in ("false_alarms", "false_alarms_by_class")]
    cells += [shown(pacs, "mean", name, column, "0") for column in ("auroc", "delay")]
    cells += [shown(pacs, "clean", name, column, "0") for column in ("false_alarms", "false_alarms_by_class")]
    return f"| {name} | {' | '.join(cells)} |\n"


def shown(rows: list[dict[str, str]], shift: str, detector: str, column: str, severity: str) -> str:
    row = next(r for r in rows if (r["shift"], r["detector"], r["severity"]) == (shift, detector, severity))
    if row[column] == "":
        return "-"
    value = float(row[column])
    return {"auroc": f"{value:.3f}", "delay": f"{value:.0f}"}.get(column, f"{100 * value:.1f} %")


def filled(text: str) -> str:
    """The page with the table between its marks."""
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN + table() + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text()))
