"""The tables of NC-TTT's preset: what it gives on three trainings, and what each of its parts gives, from their rows.

    python study/preset.py > results/tables/preset.md

Gains are in points over batch statistics on the same checkpoint, with 95 % intervals of a paired bootstrap over
batches; where there are three trainings they are means over them, and the deviation is over the trainings.
"""

from collections.abc import Iterator
from pathlib import Path

from ncttt.benchmark import Store
from ncttt.benchmark.intervals import Difference, mean_and_deviation, mean_difference
from ncttt.report import compare
from ncttt.report.rendering.markdown import as_markdown
from ncttt.report.table import Number, in_points, table_of

RESULTS = Path(__file__).resolve().parents[1] / "results"
TRAININGS = ("cifar10-small-ncttt", *(f"results/checkpoints/cifar10-small-ncttt-{seed}" for seed in (1, 2)))
STREAMS = {"episodic, 2,000 images": "preset_trainings", "online, 10,000 images": "preset_online"}
# What the preset has, and the label of the preset without it.
PARTS = {
    "the score sets the size of a step": "fixed steps",
    "predicts by image and mirror image": "without mirror images",
    "learns from two copies": "without copies",
    "copies are crops": "whole copies",
    "entropy of the mean over copies": "entropy of each copy",
    "batch statistics": "source statistics",
}
OTHERS = ("fast", "mirror images alone", "noise contrast in place of entropy", "noise contrast beside entropy")


def tables() -> str:
    """The tables as Markdown, with a heading each."""
    return "\n".join(f"## {title}\n\n{as_markdown(table_of(head, rows))}" for title, head, rows in _tables())


def gain(store: Store, first: str, second: str = "ptbn", **where: object) -> tuple[Difference, float | None] | None:
    """The mean difference of two labels over the trainings that both have rows of, and its deviation over them."""
    there = {(row["method"], row["checkpoint"]) for row in store.rows(**where)}
    both = [training for training in TRAININGS if {(first, training), (second, training)} <= there]
    found = [compare(store, first, second, checkpoint=each, **where).overall.difference for each in both]
    return (mean_difference(found), mean_and_deviation([one.mean for one in found])[1]) if found else None


def _tables() -> Iterator[tuple[str, list[str], list[list[object]]]]:
    head = ["stream", "preset", "accuracy %", "over batch statistics", "deviation"]
    yield "On three trainings, test images", head, list(_trainings())
    head = ["the preset less the preset without it", "fresh validation images", "test images"]
    with _store("preset_fresh") as fresh, _store("preset_parts") as test:
        rows = [
            [part, *(_shown(gain(store, "preset", label)) for store in (fresh, test))] for part, label in PARTS.items()
        ]
        yield "What each part gives", head, rows
        rows = [[label, *(_shown(gain(store, label)) for store in (fresh, test))] for label in ("preset", *OTHERS)]
        yield "Over batch statistics", ["", *head[1:]], rows
    yield "Searched on validation images", ["", "over batch statistics", "deviation"], list(_searched())


def _trainings() -> Iterator[list[object]]:
    for stream, name in STREAMS.items():
        with _store(name) as store:
            for label in ("preset", "fast", "preset that stops"):
                found = gain(store, label)
                if found is not None:
                    rows = [row for row in store.rows(method=label) if row["corruption"] != "clean"]
                    accuracy = Number(100 * sum(row["accuracy"] for row in rows) / len(rows))
                    yield [stream, label, accuracy, in_points(found[0]), _points(found[1])]
    with _store("preset_trainings") as store:
        for label in ("preset", "preset that stops"):
            clean = [compare(store, label, "source", checkpoint=each, corruption="clean") for each in TRAININGS]
            differences = [one.overall.difference for one in clean]
            accuracy = Number(100 * sum(row["accuracy"] for row in store.rows(method=label, corruption="clean")) / 3)
            deviation = mean_and_deviation([one.mean for one in differences])[1]
            less = in_points(mean_difference(differences))
            yield ["clean images, over the source model", label, accuracy, less, _points(deviation)]


def _searched() -> Iterator[list[object]]:
    for name in ("preset_search", "preset_search_online"):
        with _store(name) as store:
            labels = dict.fromkeys(row["method"] for row in store.rows())
            found = {label: gain(store, label) for label in labels if label != "ptbn"}
            for label, each in sorted(found.items(), key=lambda item: -item[1][0].mean if item[1] else 0):
                where = "online, " if name.endswith("online") else ""
                yield [where + label, _shown(each), _points(each[1]) if each else ""]


def _store(name: str) -> Store:
    return Store(RESULTS / f"cifar10c_{name}.sqlite", read_only=True)


def _shown(found: tuple[Difference, float | None] | None) -> Number | str:
    return "" if found is None else in_points(found[0])


def _points(deviation: float | None) -> Number | str:
    return "" if deviation is None else Number(100 * deviation)


if __name__ == "__main__":
    print(tables())
