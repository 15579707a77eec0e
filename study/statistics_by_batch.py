"""Accuracy by statistics policy and batch size, as the table of docs/adapt.md.

    python study/statistics_by_batch.py results/statistics_by_batch.csv > results/tables/statistics_by_batch.md

A cell is the accuracy in percent on clean images and the mean under the shifted ones, over the models of the rows.
"""

import sys
from collections import defaultdict

from ncttt.benchmark import read_rows
from ncttt.data.corruptions import CLEAN


def main(path: str) -> None:
    rows = read_rows(path)
    accuracies: dict[tuple[str, int, bool], list[float]] = defaultdict(list)
    for row in rows:
        accuracies[row["method"], row["batch_size"], row["corruption"] == CLEAN].append(100 * row["accuracy"])
    sizes = sorted({row["batch_size"] for row in rows})
    policies = sorted({row["method"] for row in rows}, key=lambda name: _mean(accuracies[name, sizes[0], False]))
    print("| statistics | " + " | ".join(map(str, sizes)) + " |")
    print("|---|" + "---:|" * len(sizes))
    for name in policies:
        cells = (f"{_mean(accuracies[name, s, True]):.1f} / {_mean(accuracies[name, s, False]):.1f}" for s in sizes)
        print(f"| `{name}` | " + " | ".join(cells) + " |")


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


if __name__ == "__main__":
    main(*sys.argv[1:])
