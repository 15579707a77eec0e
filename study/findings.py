"""What the study found: paired comparisons from its store, and the tables of results/README.md from what is committed.

    python study/findings.py --store results/cifar10c_severity5.sqlite  # rows and comparisons, then the tables
    python study/findings.py                                            # the tables alone
    python study/findings.py --check                                    # are they those of the files beside them?

A table stands in the README between `<!-- name -->` and `<!-- / -->`.
"""

import argparse
import json
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from study_rows import (
    COMPARISONS,
    CONTROLS,
    LEARN,
    NO_BRANCH,
    NOISE,
    OWN,
    PLAIN,
    PROTOCOLS,
    RESULTS,
    ROWS,
    Row,
    accuracy,
    compared,
    comparisons,
    gain,
    measured,
    of_steps,
    paper,
    read,
    write_csv,
)

from ncttt.base.files import replace_file
from ncttt.benchmark.store import Store
from ncttt.data.corruptions import CLEAN, CORRUPTIONS
from ncttt.report import Line, Number, Table, compare, render
from ncttt.report.names import spelled
from ncttt.report.paper.rows import AVERAGE
from ncttt.report.table import average, best_in_bold

TRIALS = RESULTS / "tuning"
# Of another network, whose rows are no match for the others'.
TRANSFORMER = RESULTS / "cifar10c_ttt_mae.sqlite"
ITERATIONS, BRANCH = RESULTS / "cifar10c_iterations.csv", RESULTS / "branch.csv"
PASSES = RESULTS / "cifar10c_passes.csv"


def headline() -> Table:
    """Every method on its own checkpoint: mean accuracies, what its steps gave, and the paper's mean."""
    columns: dict[str, Callable[[str], Number | None]] = {
        "episodic": lambda name: accuracy(OWN[name], "episodic", "mean"),
        "online": lambda name: accuracy(OWN[name], "online", "mean") if name in LEARN else None,
        "gain from the steps (episodic)": lambda name: of_steps(OWN[name], "episodic") if name in LEARN else None,
        "gain from the steps (online)": lambda name: of_steps(OWN[name], "online") if name in LEARN else None,
        "clean, episodic": lambda name: accuracy(OWN[name], "episodic", CLEAN),
        "paper (ResNet-50)": lambda name: paper(OWN[name][0]),
    }
    numbers = {title: [column(name) for name in OWN] for title, column in columns.items()}
    for title in ("episodic", "online", "clean, episodic", "paper (ResNet-50)"):
        numbers[title] = list(best_in_bold(numbers[title]))
    lines = [Line(name, tuple(numbers[title][place] for title in columns)) for place, name in enumerate(OWN)]
    return Table("", "method", tuple(columns), tuple(lines))


def each(protocol: str) -> Table:
    """All corruptions and methods, each on its own checkpoint."""
    names = tuple(OWN) if protocol == "episodic" else LEARN
    lines = [
        Line(spelled(corruption), best_in_bold([accuracy(OWN[name], protocol, corruption) for name in names]))
        for corruption in (CLEAN, *CORRUPTIONS, "mean")
    ]
    return Table("", "corruption", names, tuple(lines[:-1]), lines[-1])


def beside() -> Table:
    """Ours beside the paper's, corruption by corruption."""
    names = ("Source", "PTBN", "TENT", "TTT", "ClusT3", "NC-TTT")
    lines = []
    for corruption in (*CORRUPTIONS, "mean"):
        theirs = AVERAGE if corruption == "mean" else corruption
        numbers = [(accuracy(OWN[name], "episodic", corruption), paper(OWN[name][0], theirs)) for name in names]
        lines.append(Line(spelled(corruption), tuple(number for pair in numbers for number in pair)))
    columns = tuple(f"{name}{part}" for name in names for part in ("", ", paper"))
    return Table("", "corruption", columns, tuple(lines[:-1]), lines[-1])


def checkpoints() -> Table:
    """Methods without a branch on both checkpoints."""
    lines = []
    for name in NO_BRANCH:
        plain, noise = (accuracy((OWN[name][0], model), "episodic", "mean") for model in (PLAIN, NOISE))
        both = None if plain is None or noise is None else Number(noise.mean - plain.mean, signed=True)
        lines.append(Line(name, (plain, noise, both)))
    return Table("", "method, episodic", ("plain checkpoint", "NC-TTT's checkpoint", "difference"), tuple(lines))


def attribution(protocol: str) -> Table:
    """Of every method that learns, on its own checkpoint: what the statistics gave, and what the steps."""
    lines = []
    for name in LEARN:
        source, batch = ((label, OWN[name][1]) for label in ("source", "ptbn"))
        accuracies = [accuracy(run, protocol, "mean") for run in (source, batch, OWN[name])]
        lines.append(Line(name, (*accuracies, compared(batch, source, protocol), of_steps(OWN[name], protocol))))
    columns = ("source statistics", "batch statistics", "batch statistics and steps", "by statistics", "by steps")
    return Table("", protocol, columns, tuple(lines))


def rivals() -> Table:
    """NC-TTT minus every other method, both on their own checkpoints."""
    lines = [
        Line(name, tuple(compared(OWN["NC-TTT"], own, protocol) for protocol in PROTOCOLS))
        for name, own in OWN.items()
        if name != "NC-TTT"
    ]
    return Table("", "NC-TTT minus", PROTOCOLS, tuple(lines))


def controls() -> Table:
    """Losses and rules on NC-TTT's checkpoint: gains over batch statistics, and NC-TTT's lead over them."""
    lines = []
    for name, run in CONTROLS.items():
        over = [of_steps(run, protocol) for protocol in PROTOCOLS]
        lead = [compared(OWN["NC-TTT"], run, protocol) for protocol in PROTOCOLS]
        lines.append(Line(name, (*over, *lead, accuracy(run, "episodic", CLEAN))))
    columns = ("episodic", "online", "NC-TTT minus it, episodic", "NC-TTT minus it, online", "clean, episodic")
    return Table("", "over batch statistics", columns, tuple(lines))


def by_corruption() -> Table:
    """What NC-TTT gives over batch statistics on its checkpoint, corruption by corruption."""
    lines = []
    for corruption in (CLEAN, *CORRUPTIONS, "mean"):
        statistics = accuracy(("ptbn", NOISE), "episodic", corruption)
        gains = [of_steps(OWN["NC-TTT"], protocol, corruption) for protocol in PROTOCOLS]
        stops = of_steps(CONTROLS["NC-TTT that stops"], "episodic", corruption)
        lines.append(Line(spelled(corruption), (statistics, *gains, stops)))
    columns = ("batch statistics", "steps, episodic", "steps, online", "that stop, episodic")
    return Table("", "corruption", columns, tuple(lines[:-1]), lines[-1])


def transformer() -> Table:
    """TTT-MAE on the vision transformer that was trained for it, and what its steps gave over that as it is."""
    with Store.existing(TRANSFORMER) as store:
        comparison = compare(store, "ttt_mae", "source")
    lines = []
    for corruption, one in {**comparison.each, "mean": comparison.overall}.items():
        mean, low, high = one.difference
        steps = gain({"difference": mean, "low": low, "high": high})
        lines.append(Line(spelled(corruption), (Number(100 * one.second), Number(100 * one.first), steps)))
    return Table("", "corruption", ("Source", "TTT-MAE", "by steps"), tuple(lines[:-1]), lines[-1])


def tuned(name: str) -> Table:
    """The trials of a tuning: what was changed down, step counts across, the winners on fresh images last."""
    rows = read(TRIALS / f"{name}.csv")
    settings = list(rows[0])[: list(rows[0]).index("on")]
    varied = [key for key in settings if key != "steps" and len({row[key] for row in rows}) > 1] or ["lr"]
    counts = sorted({int(row["steps"]) for row in rows})
    gains: dict[str, dict[str, Number]] = {}
    for row in rows:
        label = ", ".join(f"{key.rpartition('.')[2]} {row[key]}" for key in varied if row[key]) or "as it stands"
        column = _steps(int(row["steps"])) + " on fresh images" * (row["on"] == "fresh")
        gains.setdefault(label, {})[column] = gain({**row, "difference": row["gain"]})
    columns = [_steps(count) for count in counts]
    columns += [
        fresh for column in columns if any((fresh := f"{column} on fresh images") in one for one in gains.values())
    ]
    lines = [Line(label, tuple(one.get(column) for column in columns)) for label, one in gains.items()]
    return Table("", "settings", tuple(columns), tuple(sorted(lines, key=lambda line: line.name)))


def _steps(count: int) -> str:
    return f"{count} step{'s' * (count != 1)}"


def informative() -> Table:
    """What the branch knows of each corruption, where along the iterations accuracy peaks, and where a level stops."""
    branch = {row["corruption"]: row for row in read(BRANCH) if row["checkpoint"] == NOISE}
    lines = []
    for corruption in (CLEAN, *CORRUPTIONS):
        own, path = branch[corruption], _path("nc_ttt", corruption)
        stops = _iterated("nc_ttt that stops", corruption)
        numbers = (
            Number(100 * float(own["error"])),
            Number(float(own["score"])),
            Number(float(own["auroc"])),
            Number(float(own["cosine"]), signed=True),
            Number(float(own["entropy_cosine"]), signed=True),
            Number(100 * float(own["positive"])),
            Number(max(path, key=lambda count: path[count])),
            Number(stops["steps_taken"]),
        )
        lines.append(Line(spelled(corruption), numbers))
    columns = (
        "error with batch statistics, %",
        "score",
        "told from clean (AUROC)",
        "cosine with the true gradient",
        "of the entropy",
        "batches where positive, %",
        "steps to the peak",
        "steps to the stop",
    )
    return Table("", "corruption", columns, tuple(lines))


def iterations(label: str) -> Table:
    """Accuracy against iterations, of each corruption."""
    paths = {corruption: _path(label, corruption) for corruption in CORRUPTIONS}
    lines = [Line(spelled(name), best_in_bold(list(map(Number, path.values())))) for name, path in paths.items()]
    return Table("", "steps", tuple(map(str, paths[CORRUPTIONS[0]])), tuple(lines))


def iterations_in_the_mean() -> Table:
    """The same in the mean of the corruptions: the preset, with a stop, and the paper's loss alone."""
    names = {
        "preset": "nc_ttt",
        "preset that stops": "nc_ttt that stops",
        "paper's loss alone, steps of 2e-4": "nc_ttt gently",
    }
    lines = []
    for name, label in names.items():
        paths = [_path(label, corruption) for corruption in CORRUPTIONS]
        means = [Number(average(path[count] for path in paths)) for count in paths[0]]
        lines.append(Line(name, best_in_bold(means)))
    return Table("", "steps", tuple(map(str, _path("nc_ttt", CORRUPTIONS[0]))), tuple(lines))


def passes() -> Table:
    """Means over corruptions after passes that move statistics, as in the authors' code, with and without gradient."""
    rows, counts = measured(PASSES), (0, 5, 10, 20, 50)
    lines = []
    for name, checkpoint in {"no gradient, plain model": PLAIN, "no gradient, NC-TTT's model": NOISE}.items():
        own = {
            count: [100 * row["accuracy"] for row in rows if _is(row, f"{count} passes", checkpoint)]
            for count in counts
        }
        lines.append(Line(name, tuple(Number(average(own[count])) for count in counts)))
    paths = [_accuracy_at(row) for row in rows if _is(row, "passes with gradient", NOISE)]
    after = (Number(average(path[count] for path in paths)) if count in paths[0] else None for count in counts)
    lines.append(Line("gradient of the paper's loss, 1e-5, NC-TTT's model", tuple(after)))
    return Table("", "passes", tuple(map(str, counts)), tuple(lines))


def _is(row: Row, label: str, checkpoint: str) -> bool:
    return (row["method"], row["checkpoint"]) == (label, checkpoint)


def _accuracy_at(row: Row) -> dict[int, float]:
    return {int(count): 100 * value for count, value in json.loads(row["accuracy_at"]).items()}


def _path(label: str, corruption: str) -> dict[int, float]:
    return _accuracy_at(_iterated(label, corruption))


def _iterated(label: str, corruption: str) -> Row:
    return next(row for row in measured(ITERATIONS) if (row["corruption"], row["method"]) == (corruption, label))


TABLES: dict[str, Callable[[], Table]] = {
    "headline": headline,
    "episodic": partial(each, "episodic"),
    "online": partial(each, "online"),
    "beside the paper": beside,
    "checkpoints": checkpoints,
    "attribution episodic": partial(attribution, "episodic"),
    "attribution online": partial(attribution, "online"),
    "rivals": rivals,
    "controls": controls,
    "by corruption": by_corruption,
    "transformer": transformer,
    "informative": informative,
    "iterations": partial(iterations, "nc_ttt"),
    "iterations in the mean": iterations_in_the_mean,
    "passes": passes,
    **{f"tuning {path.stem}": partial(tuned, path.stem) for path in sorted(TRIALS.glob("*.csv"))},
}


def filled(text: str) -> str:
    """The README with its tables as the files beside it say."""

    def put(match: re.Match[str]) -> str:
        return f"<!-- {match[1]} -->\n\n{render(TABLES[match[1]]())}\n<!-- / -->"

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
        sys.exit(f"the tables of {page} are not those of the files beside it; python study/findings.py writes them")


if __name__ == "__main__":
    main()
