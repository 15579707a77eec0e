"""The table of the field's methods on one continual stream, from its rows, its costs and its search.

    python study/field.py > results/tables/field.md

Accuracy is the mean over fifteen corruptions; gains are over batch statistics on the same checkpoint, with 95 %
intervals over blocks of the stream. Published errors belong to another network (WRN-28-10) and longer domains.
"""

import csv
import json
from pathlib import Path

from ncttt.benchmark import Store
from ncttt.report import compare
from ncttt.report.names import needs_of, spelled_method
from ncttt.report.rendering.markdown import as_markdown
from ncttt.report.table import Number, in_points, table_of

RESULTS = Path(__file__).resolve().parents[1] / "results"
STORE, COSTS, TRIALS = RESULTS / "cifar10c_field.sqlite", RESULTS / "speed/field.csv", RESULTS / "tuning/field.csv"
PLAIN = "cifar10-small-source"
STATISTICS = ("source", "ptbn", "ptbn stream")  # on every checkpoint, of which one is shown
SEARCHED = {"ptbn stream": "ptbn", "ptbn": ""}  # whose search it was
# Error in percent on CIFAR-10-C, severity 5, continual, as the methods' authors and public benchmarks give it.
PUBLISHED = {
    "source": 43.5,
    "ptbn": 20.4,
    "tent": 20.0,
    "eata": 17.9,
    "sar": 20.4,
    "cotta": 16.5,
    "rotta": 19.3,
    "roid": 16.2,
}


def lines_by(path: Path, column: str) -> dict[str, dict[str, str]]:
    """The lines of a CSV by one of its columns."""
    with path.open(newline="") as file:
        return {line[column]: line for line in csv.DictReader(file)}


def table() -> str:
    """The table as Markdown, the best method first."""
    costs, trials = lines_by(COSTS, "setting"), lines_by(TRIALS, "method")
    headers = ["method", "needs of the source", "accuracy %", "over batch statistics", "ms an image", "forwards"]
    body = []
    with Store(STORE, read_only=True) as store:
        rows = store.rows()
        shown = [row for row in rows if row["method"] not in STATISTICS or row["checkpoint"] == PLAIN]
        for row in sorted(shown, key=lambda row: -row["accuracy"]):
            label, checkpoint = row["method"], row["checkpoint"]
            gain = None
            if label != "ptbn":
                found = compare(store, label, "ptbn", checkpoint=checkpoint, other_checkpoint=checkpoint)
                gain = found.overall.difference
            cost = costs[label]
            searched = "six trials" if SEARCHED.get(label, label) in trials else "none"
            published = PUBLISHED.get(label)
            body.append(
                [
                    spelled_method(label),
                    needs_of(json.loads(row["settings"])["name"]),
                    Number(100 * row["accuracy"]),
                    "" if gain is None else in_points(gain),
                    Number(float(cost["ms_per_image"]), decimals=1),
                    Number(float(cost["times_forward"]), decimals=1),
                    searched,
                    "" if published is None else Number(100 - published, decimals=1),
                ]
            )
    return as_markdown(table_of([*headers, "search", "published %"], body))


if __name__ == "__main__":
    print(table())
