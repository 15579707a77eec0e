"""What a file may hold: a table of keys, each with a rule that says in words what is expected.

One checker reads every description that comes from outside, so that a damaged one is one line that names the file, the
key, what was found and what was expected, before anything is applied.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ncttt.base.errors import InputError, shown

DEEPEST = 32  # lists and objects inside one another
LARGEST = 16 << 20  # bytes of a JSON file
MISSING = object()


class Rule(NamedTuple):
    """What is expected, in words, and whether a value is that."""

    expected: str
    holds: Callable[[Any], bool]
    optional: bool = False


def check_keys(values: Any, rules: Mapping[str, Rule], where: str) -> None:
    """Raise an `InputError` unless these are values by name of which each follows its rule; other names are left alone.

    >>> check_keys({"step": -1}, {"step": whole()}, "state")
    Traceback (most recent call last):
    ncttt.base.errors.InputError: state, step: found -1; expected a whole number from 0
    """
    if not isinstance(values, Mapping):
        raise InputError(f"{where}: found {shown(values)}; expected values by name")
    for name, rule in rules.items():
        value = values.get(name, MISSING)
        if value is MISSING and rule.optional:
            continue
        if value is MISSING or not rule.holds(value):
            found = "none" if value is MISSING else shown(value)
            raise InputError(f"{where}, {name}: found {found}; expected {rule.expected}")


def read_json(path: Path) -> Any:
    """The content of a JSON file, or an `InputError` that names it."""
    try:
        with path.open("rb") as file:
            text = file.read(LARGEST + 1)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    if len(text) > LARGEST:
        raise InputError(f"{path} is larger than {LARGEST >> 20} MiB, which no JSON file of ncttt is")
    return parsed_json(text, str(path))


def parsed_json(text: str | bytes, where: str) -> Any:
    """The value of a JSON text of no more than `DEEPEST` levels."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise InputError(f"{where} is not valid JSON: {reason}") from None
    parts = [value]
    for _ in range(DEEPEST):
        parts = [part for whole in parts for part in _inside(whole)]
        if not parts:
            return value
    raise InputError(f"{where} is not valid JSON of ncttt: it is nested deeper than {DEEPEST} levels")


def whole(low: int = 0, high: int = 2**63 - 1, optional: bool = False) -> Rule:
    """A whole number."""
    words = f"a whole number from {low}" + ("" if high == 2**63 - 1 else f" to {high}")
    return Rule(words, lambda value: is_whole(value) and low <= value <= high, optional)


def matching(pattern: str, expected: str, optional: bool = False) -> Rule:
    """A text of a form."""
    return Rule(expected, lambda value: isinstance(value, str) and bool(re.fullmatch(pattern, value)), optional)


def is_whole(value: Any) -> bool:
    """Whether this is an int, and no bool."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Whether this is a finite number, and no bool."""
    return (is_whole(value) and abs(value) < 2**1000) or (isinstance(value, float) and math.isfinite(value))


def is_list_of(value: Any, holds: Callable[[Any], bool]) -> bool:
    """Whether this is a list or tuple of values for each of which `holds` is true."""
    return isinstance(value, list | tuple) and all(map(holds, value))


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []
