"""What a grid compares: a method on a checkpoint, by its name alone or with settings, and settings changed by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import yaml

from ncttt.base.errors import InputError, nearest
from ncttt.methods import METHODS
from ncttt.zoo.shipped import model_for


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A method on a checkpoint.

    Attributes:
        method: Name of the method, or the address module:Class of your own.
        checkpoint: Zoo name or folder of the model; several make an entry each. By default the grid's, or the model of
            the zoo that was trained for the method on the grid's data.
        settings: Of the method, in place of its own or of the checkpoint's.
        label: What tables call it; by default the method's name.
        steps: Step counts to predict after, in place of the grid's; the last is the one that counts.
        stop: "source", to leave batches that look like source images to the source model, or a level of the score, to
            end the steps by.
        protocols: In place of the grid's.
    """

    method: str
    checkpoint: str | list[str] | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    label: str | None = None
    steps: list[int] | None = None
    stop: str | float | None = None
    protocols: list[str] | None = None


KEYS = tuple(each.name for each in fields(Entry))
LISTS = {"steps": int, "protocols": str}


def entry_from(value: Entry | Mapping[str, Any] | str) -> Entry:
    """An entry as a configuration or a command line gives it: a method's name, or a table of what `Entry` has.

    >>> entry_from("tent") == entry_from({"method": "tent"}) == Entry(method="tent")
    True
    """
    if isinstance(value, Entry):
        return value
    if isinstance(value, str):
        return Entry(method=value)
    if not isinstance(value, Mapping) or not isinstance(value.get("method"), str):
        raise InputError(f"methods: {_short(value)} names no method; write tent, or {{method: tent, settings: ...}}")
    for key, given in value.items():
        _check_key(key, given, value)
    return Entry(**{str(key): given for key, given in value.items()})


def chosen_entries(values: Iterable[Any], checkpoint: str | None, data: str | Sequence[str]) -> list[Entry]:
    """Entries, each with a checkpoint: its own, or `checkpoint`, or the model of the zoo for its method and data."""
    sets = [data] if isinstance(data, str) else list(data)
    entries = [entry_from(value) for value in values]
    if checkpoint is not None and entries and all(entry.checkpoint is not None for entry in entries):
        raise InputError(f"checkpoint {checkpoint!r} is for methods that name none, but each of them names its own")
    return [
        entry if entry.checkpoint is not None else replace(entry, checkpoint=checkpoint or _shipped(entry.method, sets))
        for entry in entries
    ]


def changed_entries(values: Iterable[Any], changes: Iterable[str]) -> list[Entry]:
    """Entries with changes such as `tent.lr=1e-3`, where `tent` is a method, or the label of an entry.

    >>> changed_entries(["source", "tent"], ["tent.lr=1e-3"])[1].settings
    {'lr': 0.001}
    """
    changed = [entry_from(value) for value in values]
    for change in changes:
        name, setting, value = _parsed(change)
        named = [name in (entry.method, entry.label) for entry in changed]
        if not any(named):
            known = dict.fromkeys(each for entry in changed for each in (entry.method, entry.label) if each)
            raise InputError(f"{change}: the grid has no method {name!r}{nearest(name, known)}")
        changed = [_with(entry, setting, value) if own else entry for entry, own in zip(changed, named, strict=True)]
    return changed


def _with(entry: Entry, setting: str, value: Any) -> Entry:
    """An entry with one thing changed: what the entry itself has, or else a setting of its method."""
    settings = {key: old for key, old in entry.settings.items() if key != setting}
    if setting in KEYS and setting not in ("method", "settings"):
        value = [value] if setting in LISTS and not isinstance(value, list) else value
        _check_key(setting, value, {"method": entry.method, setting: value})
        return replace(entry, settings=settings, **{setting: value})
    known = [each.name for each in fields(METHODS.find(entry.method))]
    if setting not in known:
        raise InputError(f"{entry.method} has no setting {setting!r}{nearest(setting, known)}")
    return replace(entry, settings=settings | {setting: value})


def _parsed(change: str) -> tuple[str, str, Any]:
    left, equals, text = change.partition("=")
    name, dot, setting = left.strip().rpartition(".")
    if not (equals and dot and name and setting and text.strip()):
        raise InputError(f"a setting is changed as in tent.lr=1e-3; found {change!r}")
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        raise InputError(f"{change}: {text!r} is no value of YAML") from None
    return name, setting, _number(value)


def _number(value: Any) -> Any:
    """YAML takes 1e-3 for a word, because it has no full stop."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _check_key(key: Any, given: Any, entry: Mapping[str, Any]) -> None:
    where = f"methods: {_short(dict(entry))}"
    if key not in KEYS:
        raise InputError(f"{where}: no key {key!r} beside the method's settings: {{...}}{nearest(str(key), KEYS)}")
    if given is not None and key in LISTS and not _is_list(given, LISTS[key]):
        raise InputError(f"{where}: {key} must be a list of {'whole numbers' if LISTS[key] is int else 'names'}")
    if key == "settings" and not isinstance(given, Mapping):
        raise InputError(f"{where}: settings must be a table such as {{lr: 0.001}}")


def _is_list(value: Any, kind: type) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str) and all(type(item) is kind for item in value)


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 100 else f"{text[:99]}…"


def _shipped(method: str, data: Sequence[str]) -> str:
    """The model of the zoo for a method on these sets, which must be the same for all of them."""
    kind = METHODS.find(method)
    models = {model_for(method if kind.needs_training() else None, name) for name in data}
    if len(models) > 1:
        raise InputError(
            f"{method} would run on {' and '.join(sorted(models))}; give a checkpoint, or make a grid for each"
        )
    return models.pop()
