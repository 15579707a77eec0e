"""What the study found: paired comparisons from its store, and the tables of results/README.md from what is committed.

    python benchmarks/findings.py --store runs/study.sqlite  # rows and comparisons from the store, then the tables
    python benchmarks/findings.py                            # the tables alone
    python benchmarks/findings.py --check                    # do they say what the files beside them say?

A table stands in the README between `<!-- name -->` and `<!-- / -->`.
"""

import argparse
import csv
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

from ncttt.benchmark.store import Store
from ncttt.benchmark.table import read_csv
from ncttt.files import replace_file
from ncttt.report import Line, Number, Table, compare, render
from ncttt.report.order import CLEAN, CORRUPTIONS, spelled
from ncttt.report.paper.rows import AVERAGE, find
from ncttt.report.table import average, best_in_bold

RESULTS = Path("results")
SEARCHES = RESULTS / "search"
ROWS, ITERATIONS = RESULTS / "cifar10c_severity5.csv", RESULTS / "cifar10c_iterations.csv"
COMPARISONS = RESULTS / "comparisons.csv"
PLAIN, NOISE = "cifar10-small-source", "cifar10-small-ncttt"
# What tables call a method, its label in the rows, and the checkpoint of its own.
OWN = {
    "Source": ("source", PLAIN),
    "LAME-L": ("lame linear", PLAIN),
    "LAME-K": ("lame knn", PLAIN),
    "LAME-R": ("lame rbf", PLAIN),
    "PTBN": ("ptbn", PLAIN),
    "TENT": ("tent", PLAIN),
    "TTT": ("ttt", "cifar10-small-ttt"),
    "TTT++": ("ttt_plus", "cifar10-small-ttt-plus"),
    "ClusT3": ("clust3", "cifar10-small-clust3"),
    "TTTFlow": ("ttt_flow", "cifar10-small-ttt-flow"),
    "NC-TTT": ("nc_ttt", NOISE),
}
LEARN = ("TENT", "TTT", "TTT++", "ClusT3", "TTTFlow", "NC-TTT")
PROTOCOLS = ("episodic", "online")
Row = dict[str, Any]


def comparisons(store: Store) -> Iterator[Row]:
    """NC-TTT against every other method, and every method that learns against batch statistics on its checkpoint."""
    ours = OWN["NC-TTT"]
    controls = [("source", NOISE), ("tent", NOISE), ("entropy likewise", NOISE), ("nc_ttt that stops", NOISE)]
    pairs = [(ours, other) for other in (*OWN.values(), *controls) if other != ours]
    pairs += [(OWN[name], ("ptbn", OWN[name][1])) for name in LEARN]
    pairs += [(control, ("ptbn", NOISE)) for control in controls]
    pairs += [(("nc_ttt that stops", NOISE), ("source", NOISE)), (("nc_ttt blend", NOISE), ("ptbn blend", NOISE))]
    for protocol in PROTOCOLS:
        there = {(row["method"], row["checkpoint"]) for row in store.rows(protocol=protocol)}
        for first, second in pairs:
            if {first, second} <= there:
                found = compare(
                    store, first[0], second[0], checkpoint=first[1], other_checkpoint=second[1], protocol=protocol
                )
                for corruption, one in [*found.each.items(), ("mean", found.overall)]:
                    yield {
                        "protocol": protocol,
                        "first": first[0],
                        "first_checkpoint": first[1],
                        "second": second[0],
                        "second_checkpoint": second[1],
                        "corruption": corruption,
                        "first_accuracy": one.first,
                        "second_accuracy": one.second,
                        "difference": one.difference.mean,
                        "low": one.difference.low,
                        "high": one.difference.high,
                    }


def write_csv(path: Path, rows: Iterable[Row]) -> None:
    found = list(rows)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(found[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(found)


@cache
def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@cache
def measured(path: Path) -> list[Row]:
    return list(read_csv(path))


def accuracy(rows: list[Row], name: tuple[str, str], protocol: str, corruption: str) -> float | None:
    """Of a method on a checkpoint, in percent; `mean` is that over the corruptions."""
    asked = CORRUPTIONS if corruption == "mean" else (corruption,)
    found = [
        100 * row["accuracy"]
        for row in rows
        if (row["method"], row["checkpoint"], row["protocol"]) == (*name, protocol) and row["corruption"] in asked
    ]
    return average(found) if len(found) == len(asked) else None


def paper_mean(label: str) -> float | None:
    """The paper's mean over the fifteen corruptions, None for a method that it lacks."""
    found = find("cifar10", 5, AVERAGE, label)
    return found and found.accuracy


def number(value: float | None) -> Number | None:
    return None if value is None else Number(value)


def gain(row: dict[str, str]) -> Number:
    """A difference with its interval, in points, and a star if that leaves out zero."""
    mean, low, high = (100 * float(row[name]) for name in ("difference", "low", "high"))
    return Number(mean, interval=(low, high), signed=True, star=low > 0 or high < 0)


def compared(first: tuple[str, str], second: tuple[str, str], protocol: str, corruption: str) -> Number | None:
    """What was found for two methods, None if they were not compared."""
    asked = dict(zip(("first", "first_checkpoint", "second", "second_checkpoint"), (*first, *second), strict=True))
    asked |= {"protocol": protocol, "corruption": corruption}
    found = [row for row in read(COMPARISONS) if asked.items() <= row.items()]
    return gain(found[0]) if found else None


def headline() -> Table:
    """Every method on its own checkpoint: mean accuracies, what the steps gave, and the paper's mean."""
    rows = measured(ROWS)
    columns: dict[str, Callable[[str], Number | None]] = {
        "episodic": lambda name: number(accuracy(rows, OWN[name], "episodic", "mean")),
        "online": lambda name: number(accuracy(rows, OWN[name], "online", "mean")),
        "of it the steps, episodic": lambda name: _of_steps(name, "episodic"),
        "of it the steps, online": lambda name: _of_steps(name, "online"),
        "clean, episodic": lambda name: number(accuracy(rows, OWN[name], "episodic", CLEAN)),
        "paper": lambda name: number(paper_mean(OWN[name][0])),
    }
    numbers = {title: [find(name) for name in OWN] for title, find in columns.items()}
    for title in ("episodic", "online", "clean, episodic", "paper"):
        numbers[title] = list(best_in_bold(numbers[title]))
    lines = [Line(name, tuple(numbers[title][place] for title in columns)) for place, name in enumerate(OWN)]
    return Table("", "method", tuple(columns), tuple(lines))


def _of_steps(name: str, protocol: str) -> Number | None:
    return compared(OWN[name], ("ptbn", OWN[name][1]), protocol, "mean") if name in LEARN else None


def each(protocol: str) -> Table:
    """All corruptions and methods, each on its own checkpoint."""
    rows = measured(ROWS)
    names = [name for name in OWN if accuracy(rows, OWN[name], protocol, "mean") is not None]
    lines = [
        Line(spelled(corruption), best_in_bold([number(accuracy(rows, OWN[n], protocol, corruption)) for n in names]))
        for corruption in (CLEAN, *CORRUPTIONS, "mean")
    ]
    return Table("", "corruption", tuple(names), tuple(lines[:-1]), lines[-1])


def checkpoints() -> Table:
    """Methods without a branch on both checkpoints."""
    rows = measured(ROWS)
    lines = []
    for name in ("Source", "LAME-L", "LAME-K", "LAME-R", "PTBN", "TENT"):
        plain, noise = (accuracy(rows, (OWN[name][0], model), "episodic", "mean") or 0.0 for model in (PLAIN, NOISE))
        lines.append(Line(name, (Number(plain), Number(noise), Number(noise - plain, signed=True))))
    return Table("", "method, episodic", ("plain checkpoint", "NC-TTT's checkpoint", "difference"), tuple(lines))


def rivals() -> Table:
    """NC-TTT minus every other method, both on their own checkpoints."""
    others = [name for name in OWN if name != "NC-TTT"]
    lines = [
        Line(name, tuple(compared(OWN["NC-TTT"], OWN[name], protocol, "mean") for protocol in PROTOCOLS))
        for name in others
    ]
    return Table("", "NC-TTT minus", PROTOCOLS, tuple(lines))


def by_corruption() -> Table:
    """What NC-TTT's steps give over batch statistics on its checkpoint, corruption by corruption."""
    rows, own = measured(ROWS), OWN["NC-TTT"]
    lines = []
    for corruption in (CLEAN, *CORRUPTIONS, "mean"):
        statistics = number(accuracy(rows, ("ptbn", NOISE), "episodic", corruption))
        gains = [compared(own, ("ptbn", NOISE), protocol, corruption) for protocol in PROTOCOLS]
        lines.append(Line(spelled(corruption), (statistics, *gains)))
    columns = ("batch statistics", "steps, episodic", "steps, online")
    return Table("", "corruption", columns, tuple(lines[:-1]), lines[-1])


def searched(name: str) -> Table:
    """The trials of a search: what was changed down, step counts across, the winners on fresh images last."""
    rows = read(SEARCHES / f"{name}.csv")
    settings = list(rows[0])[: list(rows[0]).index("on")]
    varied = [key for key in settings if key != "steps" and len({row[key] for row in rows}) > 1]
    counts = sorted({int(row["steps"]) for row in rows})
    found: dict[str, dict[str, Number]] = {}
    for row in rows:
        label = ", ".join(f"{key.rpartition('.')[2]} {row[key]}" for key in varied if row[key]) or "as it stands"
        column = _steps(int(row["steps"])) + " on fresh images" * (row["on"] == "fresh")
        found.setdefault(label, {})[column] = gain({**row, "difference": row["gain"]})
    columns = [_steps(count) for count in counts]
    columns += [
        fresh for column in columns if any((fresh := f"{column} on fresh images") in one for one in found.values())
    ]
    lines = [Line(label, tuple(one.get(column) for column in columns)) for label, one in found.items()]
    return Table("", "settings", tuple(columns), tuple(sorted(lines, key=lambda line: line.name)))


def _steps(count: int) -> str:
    return f"{count} step{'s' * (count != 1)}"


def informative() -> Table:
    """What the branch knows of each corruption, where along the iterations accuracy peaks, and where a level stops."""
    branch = {row["corruption"]: row for row in read(RESULTS / "branch.csv") if row["checkpoint"] == NOISE}
    rows = measured(ITERATIONS)
    lines = []
    for corruption in (CLEAN, *CORRUPTIONS):
        own = branch[corruption]
        path = _path(rows, corruption)
        best = max(path, key=lambda count: path[count])
        stops = next(r for r in rows if (r["corruption"], r["method"]) == (corruption, "nc_ttt that stops"))
        numbers = (
            Number(100 * float(own["error"])),
            Number(float(own["score"])),
            Number(float(own["auroc"])),
            Number(float(own["cosine"]), signed=True),
            Number(100 * float(own["positive"])),
            Number(best),
            Number(stops["steps_taken"]),
        )
        lines.append(Line(spelled(corruption), numbers))
    columns = (
        "error with batch statistics, %",
        "score",
        "told from clean (AUROC)",
        "cosine with the true gradient",
        "batches where positive, %",
        "steps to the peak",
        "steps to the stop",
    )
    return Table("", "corruption", columns, tuple(lines))


def iterations() -> Table:
    """Accuracy against iterations: means over the corruptions, and those of each."""
    rows = measured(ITERATIONS)
    paths = {corruption: _path(rows, corruption) for corruption in CORRUPTIONS}
    counts = list(paths[CORRUPTIONS[0]])
    lines = [
        Line(spelled(name), best_in_bold([Number(path[count]) for count in counts])) for name, path in paths.items()
    ]
    means = best_in_bold([Number(average(path[count] for path in paths.values())) for count in counts])
    return Table("", "steps", tuple(map(str, counts)), tuple(lines), Line("Mean", means))


def _path(rows: list[Row], corruption: str) -> dict[int, float]:
    row = next(row for row in rows if (row["corruption"], row["method"]) == (corruption, "nc_ttt"))
    return {int(count): 100 * value for count, value in json.loads(row["accuracy_at"]).items()}


TABLES: dict[str, Callable[[], Table]] = {
    "headline": headline,
    "episodic": lambda: each("episodic"),
    "online": lambda: each("online"),
    "checkpoints": checkpoints,
    "rivals": rivals,
    "by corruption": by_corruption,
    "informative": informative,
    "iterations": iterations,
}


TABLES |= {f"search {path.stem}": partial(searched, path.stem) for path in sorted(SEARCHES.glob("*.csv"))}


def filled(text: str) -> str:
    """The README with its tables as the files beside it say."""

    def put(found: re.Match[str]) -> str:
        return f"<!-- {found[1]} -->\n\n{render(TABLES[found[1]]())}\n<!-- / -->"

    return re.sub(r"<!-- ([a-z0-9_ ]+) -->.*?<!-- / -->", put, text, flags=re.DOTALL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", type=Path, help="of `ncttt bench`")
    parser.add_argument("--check", action="store_true", help="write nothing")
    options = parser.parse_args()
    if options.store:
        with Store(options.store, read_only=True) as store:
            store.export(ROWS)
            write_csv(COMPARISONS, comparisons(store))
    page = RESULTS / "README.md"
    before = page.read_text()
    after = filled(before)
    if not options.check:
        replace_file(page, after.encode())
    elif after != before:
        sys.exit(
            f"the tables of {page} are not those of the files beside it; python benchmarks/findings.py writes them"
        )


if __name__ == "__main__":
    main()
