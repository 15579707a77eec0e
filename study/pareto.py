"""Accuracy against time: the field's methods and NC-TTT's presets on one continual stream, and which are not dominated.

    python study/pareto.py --out results/figures

Accuracy is from the rows of study/field, time per image from benchmarks/cost.py on the same grid, as multiples of a
plain forward pass. A method is on the Pareto front if none is both faster and more accurate.
"""

import argparse
from pathlib import Path

from field import COSTS, PLAIN, STATISTICS, STORE, lines_by
from matplotlib.figure import Figure

from ncttt.benchmark import Store
from ncttt.report.figures.shared.style import new_figure, styled
from ncttt.report.names import spelled_method

OURS = ("nc_ttt preset", "nc_ttt fast")
Point = tuple[float, float]  # times a forward, accuracy in percent


def points() -> dict[str, Point]:
    """Cost and accuracy of every method that was measured on the stream."""
    costs = lines_by(COSTS, "setting")
    with Store(STORE, read_only=True) as store:
        rows = [row for row in store.rows() if row["method"] not in STATISTICS or row["checkpoint"] == PLAIN]
    return {row["method"]: (float(costs[row["method"]]["times_forward"]), 100 * row["accuracy"]) for row in rows}


def front(points: dict[str, Point]) -> list[str]:
    """The methods that none dominates, the fastest first.

    >>> front({"slow": (9.0, 80.0), "good": (2.0, 80.0), "fast": (1.0, 70.0)})
    ['fast', 'good']
    """
    found: list[str] = []
    for name, (_, accuracy) in sorted(points.items(), key=lambda item: (item[1][0], -item[1][1])):
        if not found or accuracy > points[found[-1]][1]:
            found.append(name)
    return found


@styled
def draw(points: dict[str, Point]) -> Figure:
    """The points with their names, and the front as a line."""
    figure = new_figure(height=4.6)
    axes = figure.subplots()
    best = front(points)
    axes.plot(*zip(*(points[name] for name in best), strict=True), color="C0", linewidth=1, drawstyle="steps-post")
    for name, (cost, accuracy) in points.items():
        axes.plot(cost, accuracy, "o", color="C1" if name in OURS else "C0" if name in best else "0.6", markersize=5)
        axes.annotate(spelled_method(name), (cost, accuracy), xytext=(4, 3), textcoords="offset points", fontsize=7)
    axes.set_xscale("log")
    axes.set_ylim(64)
    axes.set_xlabel("time per image, plain forward passes")
    axes.set_ylabel("accuracy, %")
    axes.set_title("CIFAR-10-C, severity 5, one continual stream; the line is the Pareto front", loc="left")
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    found = points()
    print("on the front:", ", ".join(front(found)))
    figure = draw(found)
    for ending in ("png", "svg"):
        figure.savefig(options.out / f"pareto.{ending}", dpi=200)


if __name__ == "__main__":
    main()
