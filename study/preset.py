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
SEARCHES = {
    "preset_search": "Searched, episodic, 2,000 validation images, three trainings",
    "preset_search_online": "Searched, online, 4,000 validation images, one training",
}
GAIN = ("points", "deviation")
Gain = tuple[Difference, float | None]
Line = list[object]
# What the preset has, and the label of the preset without it.
PARTS = {
    "the score sets the size of a step": "fixed steps",
    "predicts by image and mirror image": "without mirror images",
    "learns from two copies": "without copies",
    "copies are crops": "whole copies",
    "entropy of the mean over copies": "entropy of each copy",
}
OTHERS = ("fast", "mirror images alone", "noise contrast in place of entropy", "noise contrast beside entropy")


def tables() -> str:
    """The tables as Markdown, with a heading each."""
    return "\n".join(f"## {title}\n\n{as_markdown(table_of(head, rows))}" for title, head, rows in _tables())


def gain(store: Store, first: str, second: str = "ptbn") -> Gain:
    """The mean difference of two labels over the trainings that both have rows of, and its deviation over them."""
    there = {(row["method"], row["checkpoint"]) for row in store.rows()}
    both = [training for training in TRAININGS if {(first, training), (second, training)} <= there]
    found = [compare(store, first, second, checkpoint=each).overall.difference for each in both]
    return mean_difference(found), mean_and_deviation([one.mean for one in found])[1]


def _tables() -> Iterator[tuple[str, list[str], list[Line]]]:
    yield "Test images, three trainings", ["stream", "preset", "accuracy %", "over", *GAIN], list(_tested())
    with _store("preset_fresh") as store:
        parts = [[part, *_shown(gain(store, "preset", label))] for part, label in PARTS.items()]
        alone = [[label, *_shown(gain(store, label))] for label in ("preset", *OTHERS)]
    yield "The preset less the preset without a part, fresh validation images", ["part", *GAIN], parts
    yield "Over batch statistics, fresh validation images", ["settings", *GAIN], alone
    for name, title in SEARCHES.items():
        with _store(name) as store:
            labels = dict.fromkeys(row["method"] for row in store.rows() if row["method"] != "ptbn")
            found = sorted(((label, gain(store, label)) for label in labels), key=lambda item: -item[1][0].mean)
        yield title, ["settings", *GAIN], [[label, *_shown(each)] for label, each in found]


def _tested() -> Iterator[Line]:
    streams = {
        "episodic": ("preset_trainings", "ptbn", ("preset", "fast")),
        "online, 10,000 images each, one training": ("preset_online", "ptbn", ("preset",)),
        "clean images, episodic": ("preset_clean", "source", ("preset that stops", "preset", "fast", "ptbn")),
    }
    for stream, (name, over, labels) in streams.items():
        with _store(name) as store:
            for label in labels:
                rows = store.rows(method=label)
                accuracy = Number(100 * sum(row["accuracy"] for row in rows) / len(rows))
                yield [stream, label, accuracy, over, *_shown(gain(store, label, over))]


def _store(name: str) -> Store:
    return Store(RESULTS / f"cifar10c_{name}.sqlite", read_only=True)


def _shown(found: Gain) -> tuple[Number, Number | str]:
    return in_points(found[0]), "" if found[1] is None else Number(100 * found[1])


if __name__ == "__main__":
    print(tables())
