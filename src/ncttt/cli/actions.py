"""What the parser of a command holds: its options, what it takes without a name, and how they are written."""

from __future__ import annotations

from argparse import Action, ArgumentParser
from collections.abc import Sequence
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

HIDDEN = ("help", "config", "print_config", "print_shtab")  # told once, by `ncttt --help`
LISTS = (list, tuple, Sequence)
METAVARS = {int: "N", float: "X", **dict.fromkeys(LISTS, "A,B"), dict: "{NAME: VALUE}"}


def options_of(parser: ArgumentParser) -> list[Action]:
    """The options of its own that a command has."""
    return [a for a in parser._actions if a.option_strings and a.dest not in HIDDEN and not a.dest.endswith(".help")]


def positionals_of(parser: ArgumentParser) -> list[Action]:
    """What a command takes without a name."""
    return [a for a in parser._actions if not a.option_strings]


def spelling(action: Action) -> str:
    """The option as it is written, with dashes."""
    return action.option_strings[0]


def required(action: Action) -> bool:
    """Whether a command cannot do without it."""
    return getattr(action, "needed", False)


def plain_type(action: Action) -> Any:
    """The type of the values, without None and without what only Python can give."""
    hint = getattr(action, "_typehint", None)
    while get_origin(hint) in (Union, UnionType):
        hint = get_args(hint)[0]
    return hint


def choices(action: Action) -> tuple[str, ...]:
    """The values that a user may choose from, if there are such."""
    hint = plain_type(action)
    if hint is bool:
        return ("true", "false")
    return tuple(map(str, get_args(hint))) if get_origin(hint) is Literal else ()


def metavar(action: Action) -> str:
    """What stands for the value: a letter, the choices, or the option's name."""
    hint = plain_type(action)
    if hint is bool and not action.default:
        return ""
    if choices(action):
        return "{" + ",".join(choices(action)) + "}"
    name = METAVARS.get(get_origin(hint) or hint) or action.dest.rsplit(".")[-1].upper()
    return f"{name} ..." if action.nargs == "+" else name
