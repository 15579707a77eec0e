"""What tables call things, and in which order: corruptions, methods, and the columns that rows make."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from ncttt.base.errors import InputError
from ncttt.data.corruptions import CLEAN, CORRUPTIONS, EXTRA
from ncttt.methods.registry import METHODS, added_to, place_of, title_of
from ncttt.methods.registry import needs_of as _needs

LAMES: Final = {"lame linear": "LAME-L", "lame knn": "LAME-K", "lame rbf": "LAME-R"}  # in the table of VisDA-C

_LINES: Final = (CLEAN, *CORRUPTIONS, *EXTRA)


def corruption_order(name: str) -> tuple[int, str]:
    """A key to sort corruptions by: clean, the fifteen of the benchmark, the extra four, then others by name.

    >>> sorted(["saturate", "fog", "shot_noise", "clean"], key=corruption_order)
    ['clean', 'shot_noise', 'fog', 'saturate']
    """
    return (_LINES.index(name), "") if name in _LINES else (len(_LINES), name)


def method_order(name: str) -> float:
    """A key to sort methods by: their places in tables, then what is not installed here."""
    # A row may name a method by its address, which is code that a report of foreign rows must not import.
    return place_of(name) if name in list(METHODS) else float("inf")


def spelled(corruption: str) -> str:
    """A corruption as a table shows it.

    >>> spelled("jpeg_compression"), spelled("shot_noise"), spelled("fog+snow")
    ('JPEG compression', 'Shot noise', '2 corruptions in one stream')
    """
    if "+" in corruption:
        return f"{corruption.count('+') + 1} corruptions in one stream"
    words = corruption.replace("_", " ")
    return "JPEG" + words[4:] if words.startswith("jpeg") else words[:1].upper() + words[1:]


def short_corruptions(names: Iterable[str]) -> dict[str, str]:
    """Corruptions by their first words, where those tell them apart, for places with little room.

    >>> list(short_corruptions(["jpeg_compression", "gaussian_noise", "gaussian_blur", "fog"]).values())
    ['JPEG', 'Gaussian noise', 'Gaussian blur', 'Fog']
    """
    whole = {name: spelled(name) for name in names}
    first = {name: text.split()[0] for name, text in whole.items()}
    twice = {word for word in first.values() if list(first.values()).count(word) > 1}
    return {name: whole[name] if word in twice else word for name, word in first.items()}


def spelled_method(label: str) -> str:
    """A method's label as figures show it; what follows the name stays as it is.

    >>> spelled_method("nc_ttt"), spelled_method("lame knn"), spelled_method("ttt_flow, a folder")
    ('NC-TTT', 'LAME-K', 'TTTFlow, a folder')
    >>> spelled_method("nc_ttt that stops"), spelled_method("mine")
    ('NC-TTT that stops', 'mine')
    """
    for name in sorted((*LAMES, *METHODS), key=len, reverse=True):
        if re.match(rf"{re.escape(name)}\b", label):
            return (LAMES.get(name) or title_of(name)) + label[len(name) :]
    return label


def needs_of(method: str) -> str:
    """What a method needs of the source, as a table shows it; empty for what is not installed here.

    >>> needs_of("nc_ttt"), needs_of("tent"), needs_of("elsewhere:Mine")
    ('own training', 'nothing', '')
    """
    return _needs(method) if method in list(METHODS) else ""


@dataclass(frozen=True)
class Column:
    """A method on a checkpoint: its label in the rows, its checkpoint, how it stops, its settings as JSON."""

    label: str
    checkpoint: str | None
    stop: str | None
    settings: str | None

    @property
    def method(self) -> str:
        """The method's name in ncttt.METHODS, or the label where the rows do not tell."""
        return str(_settings(self.settings).get("name", self.label))


def column_of(row: Mapping[str, Any]) -> Column:
    """The column that a row belongs to."""
    return Column(row["method"], row.get("checkpoint"), row.get("stop"), settings_in(row))


def settings_in(row: Mapping[str, Any]) -> str | None:
    """The settings of a row as JSON, those included that its method got after the row had been measured.

    >>> sorted(json.loads(settings_in({"settings": '{"name": "clust3", "clusters": 10}'}) or ""))
    ['clusters', 'crop', 'gather', 'mirror_mean', 'name', 'reduction']
    """
    return None if row.get("settings") is None else _completed(row["settings"])


def named_columns(columns: Iterable[Column]) -> dict[Column, str]:
    """Columns in the order of tables, with names as short as they can be and still differ.

    >>> one, other = (Column("tent", checkpoint, None, None) for checkpoint in ("a", "b"))
    >>> list(named_columns([one, Column("source", "a", None, None), other]).values())
    ['source', 'tent, a', 'tent, b']
    """
    in_order = sorted(dict.fromkeys(columns), key=lambda column: method_order(column.method))
    return {column: ", ".join([column.label, *_details(column, in_order)]) for column in in_order}


def _details(column: Column, columns: Sequence[Column]) -> list[str]:
    alike = [other for other in columns if other.label == column.label]
    details = [str(column.checkpoint)] if len({other.checkpoint for other in alike}) > 1 else []
    same = [other for other in alike if other.checkpoint == column.checkpoint]
    if len({other.stop for other in same}) > 1:
        details.append(f"stop={column.stop}")
    return details + own_settings(column, same)


def own_settings(column: Column, columns: Sequence[Column]) -> list[str]:
    """The settings in which a column differs from others of its label on its checkpoint, as `name=value`."""
    each = [_settings(other.settings) for other in columns]
    names = dict.fromkeys(name for settings in each for name in settings)
    differing = [name for name in names if len({json.dumps(settings.get(name)) for settings in each}) > 1]
    own = _settings(column.settings)
    return [f"{name}={own.get(name)}" for name in differing]


@lru_cache(maxsize=256)
def _completed(text: str) -> str:
    settings = _settings(text)
    added = added_to(str(settings.get("name")))
    return json.dumps({**added, **settings}, sort_keys=True) if added.keys() - settings.keys() else text


@lru_cache(maxsize=256)
def _settings(text: str | None) -> dict[str, Any]:
    try:
        settings = json.loads(text or "{}")
    except json.JSONDecodeError:
        settings = None
    if not isinstance(settings, dict):
        raise InputError(f"the settings of a row are a JSON object; found {text!r}")
    return settings
