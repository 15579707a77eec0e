"""What a parser of the command line holds: its commands, its options and how they are written."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from jsonargparse import ArgumentParser

HIDDEN = ("help", "config", "print_config", "print_shtab")  # told once, by `ncttt --help`
METAVARS = {int: "N", float: "X", list: "[A, B]", tuple: "[A, B]", dict: "{NAME: VALUE}"}


def name_of(parser: ArgumentParser) -> str:
    """What a user types to get here, as in `ncttt data get`."""
    name = str(parser.prog).replace(" [options]", "")
    return name if name.split()[0] == "ncttt" else "ncttt"


def commands_of(parser: ArgumentParser) -> dict[str, ArgumentParser]:
    """The commands below a parser, by name; none for one that runs."""
    found = getattr(parser, "_subcommands_action", None)
    return {} if found is None else dict(found._name_parser_map)


def walk(parser: ArgumentParser, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], ArgumentParser]]:
    """Every parser with the words that lead to it, from this one down."""
    yield words, parser
    for name, below in commands_of(parser).items():
        yield from walk(below, (*words, name))


def options_of(parser: ArgumentParser) -> list[argparse.Action]:
    """The options of its own that a command has."""
    return [a for a in parser._actions if a.option_strings and a.dest not in HIDDEN and not a.dest.endswith(".help")]


def positionals_of(parser: ArgumentParser) -> list[argparse.Action]:
    """What a command takes without a name."""
    return [a for a in parser._actions if not a.option_strings and not commands_of(parser)]


def spelling(action: argparse.Action) -> str:
    """The option as it is written, with dashes."""
    return action.option_strings[0]


def required(action: argparse.Action) -> bool:
    """Whether a command cannot do without it."""
    return getattr(action, "needed", False)


def plain_type(action: argparse.Action) -> Any:
    """The type of the values, without None and without what only Python can give."""
    hint = getattr(action, "_typehint", None)
    while get_origin(hint) in (Union, UnionType):
        hint = get_args(hint)[0]
    return hint


def choices(action: argparse.Action) -> tuple[str, ...]:
    """The values that a user may choose from, if there are such."""
    hint = plain_type(action)
    if hint is bool:
        return ("true", "false")
    return tuple(map(str, get_args(hint))) if get_origin(hint) is Literal else ()


def metavar(action: argparse.Action) -> str:
    """What stands for the value: a letter, the choices, or the option's name."""
    hint = plain_type(action)
    if hint is bool and not action.default:
        return ""
    if choices(action):
        return "{" + ",".join(choices(action)) + "}"
    name = METAVARS.get(get_origin(hint) or hint) or action.dest.rsplit(".")[-1].upper()
    return f"{name} ..." if action.nargs == "+" else name
