"""Short names for readers of the page: methods by their titles, models without their paths, data sets as papers spell
them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from ncttt.report.names import Column, named_columns, own_settings, spelled_method
from ncttt.report.shares import OWN_NORM

OWN: Final = "own model"
DATA: Final = {
    "cifar10": "CIFAR-10",
    "cifar100": "CIFAR-100",
    "cifar10-c": "CIFAR-10-C",
    "cifar100-c": "CIFAR-100-C",
    "pacs": "PACS",
    "visda-c": "VisDA-C",
    "visda_c": "VisDA-C",
}
MOST_SETTINGS: Final = 2  # in a name; all of them are in the details


def short_method(label: str) -> str:
    """A method's title; of an address the class, of a path the last part.

    >>> short_method("nc_ttt"), short_method("package.module:Mine"), short_method("nc_ttt that stops")
    ('NC-TTT', 'Mine', 'NC-TTT that stops')
    """
    return _last_part(label) or spelled_method(label)


def short_data(name: str) -> str:
    """A data set as a paper spells it; of a folder its last part.

    >>> short_data("cifar10"), short_data("digits"), short_data("images/of my cats/")
    ('CIFAR-10', 'digits', 'of my cats')
    """
    folder = re.split(r"[/\\]", name.rstrip("/\\"))[-1]
    return DATA.get(name) or _last_part(folder) or folder or name


def _last_part(text: str) -> str | None:
    """The end of an address or a path; None for any other text."""
    found = re.fullmatch(r"[\w.\\/~-]*[:/\\]([\w.-]+)[/\\]?", text)
    return found[1] if found else None


def model_names(columns: Iterable[Column]) -> dict[str | None, str]:
    """What each checkpoint is called: a model of the zoo by its name, one in a folder "own model".

    Several own models are told apart by the one method that learns on each, or else by number.

    >>> mine, other = Column("nc_ttt", "runs/a/last", None, None), Column("ttt", "runs/b/last", None, None)
    >>> model_names([mine, other])
    {'runs/a/last': "NC-TTT's own model", 'runs/b/last': "TTT's own model"}
    """
    columns = list(columns)
    every = dict.fromkeys(column.checkpoint for column in columns)
    own = [checkpoint for checkpoint in every if _is_path(checkpoint)]
    names: dict[str | None, str] = {}
    for checkpoint in every:
        name = checkpoint or ""
        if checkpoint in own:
            name = OWN if len(own) == 1 else _owner(checkpoint, columns)
        names[checkpoint] = _unlike(name, names.values())
    return names


def _is_path(checkpoint: str | None) -> bool:
    return bool(checkpoint) and bool(re.search(r"[/\\]", checkpoint or ""))


def _owner(checkpoint: str | None, columns: Sequence[Column]) -> str:
    learns = {column.method for column in columns if column.checkpoint == checkpoint} - OWN_NORM.keys()
    return f"{short_method(learns.pop())}'s {OWN}" if len(learns) == 1 else OWN


def main_checkpoint(columns: Iterable[Column]) -> str | None:
    """The checkpoint that most columns are of, the first of them if there are several."""
    return Counter(column.checkpoint for column in columns).most_common(1)[0][0]


def is_repeated(column: Column, columns: Sequence[Column]) -> bool:
    """Whether charts show the same method on the main checkpoint instead."""
    main = main_checkpoint(columns)
    return column.checkpoint != main and any(
        other.label == column.label and other.checkpoint == main for other in columns
    )


def line_names(columns: Iterable[Column], models: Mapping[str | None, str]) -> dict[Column, str]:
    """Columns of one setup in the order of tables, each with a short name of its own.

    >>> columns = [Column("tent", "a", None, None), Column("source", "a", None, None), Column("tent", "b", None, None)]
    >>> list(line_names(columns, {"a": "a", "b": "own model"}).values())
    ['Source', 'TENT', 'TENT, own model']
    """
    in_order = list(named_columns(columns))
    names: dict[Column, str] = {}
    for column in in_order:
        words = [short_method(column.label), *_details(column, in_order, models)]
        names[column] = _unlike(", ".join(words), names.values())
    return names


def _details(column: Column, columns: Sequence[Column], models: Mapping[str | None, str]) -> list[str]:
    alike = [other for other in columns if other.label == column.label]
    same = [other for other in alike if other.checkpoint == column.checkpoint]
    details = [f"stop={column.stop}"] if len({other.stop for other in same}) > 1 else []
    if len(same) < len(alike) and column.checkpoint != main_checkpoint(columns):
        details.insert(0, models[column.checkpoint])
    return details + [_without_path(text) for text in own_settings(column, same)[:MOST_SETTINGS]]


def _without_path(setting: str) -> str:
    name, _, value = setting.partition("=")
    return f"{name}={_last_part(value) or value}"


def _unlike(name: str, taken: Iterable[str]) -> str:
    """The name, with a number if it is taken."""
    taken, number, own = set(taken), 1, name
    while own in taken:
        number += 1
        own = f"{name} {number}"
    return own
