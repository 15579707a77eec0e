"""Limits of YAML that somebody gives, checked before anything is built of it.

A few lines of aliases can stand for billions of values, and PyYAML's loader in C ends the whole process when lists are
nested too deep. The parser's events come one after another, whatever they describe, so they are counted first.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import yaml

from ncttt.base.errors import InputError

MOST_BYTES, MOST_VALUES, DEEPEST, LONGEST_NUMBER = 1_000_000, 100_000, 50, 300


def read_yaml(path: str | Path) -> str:
    """The text of a file of YAML within the limits; an `InputError` for another."""
    path = Path(path)
    if not path.is_file():  # a pipe may never end, and is read only once
        raise InputError(f"{path} is no regular file")
    size = os.stat(path).st_size
    if size > MOST_BYTES:
        raise InputError(f"{path} has {size} bytes; a configuration has at most {MOST_BYTES}")
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is no text in UTF-8: byte {error.start} is {error.object[error.start]:#x}") from None
    check_yaml(text, str(path))
    return text


def check_yaml(text: str, name: str) -> None:
    """Raise an `InputError` if a text of YAML would become too many values, or too deeply nested ones.

    What is no YAML at all passes: the loader says what is wrong with it.

    >>> check_yaml("a: &a [1, 2]\\nb: [*a, *a]", "grid.yaml")
    """
    sizes: dict[str, int] = {}
    open_nodes: list[tuple[str | None, int]] = []  # anchor, and how many values there were before
    values = 0
    for event in _events(text):
        if isinstance(event, yaml.AliasEvent):
            if any(anchor == event.anchor for anchor, _ in open_nodes):
                raise InputError(f"{name}: *{event.anchor} is inside of itself")
            values += sizes.get(event.anchor, 0)
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = open_nodes.pop()
            sizes |= {anchor: values - before} if anchor else {}
        elif isinstance(event, yaml.CollectionStartEvent):
            open_nodes.append((event.anchor, values))
            values += 1
        elif isinstance(event, yaml.ScalarEvent):
            values += 1
            if "\0" in event.value:
                raise InputError(f"{name} has a text with a null byte")
            if len(event.value) > LONGEST_NUMBER and event.value.lstrip("+-").isdigit():
                raise InputError(f"{name} has a number of {len(event.value)} digits")
            sizes |= {event.anchor: 1} if event.anchor else {}
        if values > MOST_VALUES:
            raise InputError(f"{name} stands for more than {MOST_VALUES} values, aliases written out")
        if len(open_nodes) > DEEPEST:
            raise InputError(f"{name} is nested more than {DEEPEST} levels deep")


def _events(text: str) -> Iterator[yaml.Event]:
    try:
        yield from yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError:
        return
