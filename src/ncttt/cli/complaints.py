"""What the parser of a command found wrong, as one line that says what was asked, what was found and what there is."""

from __future__ import annotations

import re
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import get_args

from ncttt.base.errors import nearest
from ncttt.cli.actions import options_of, plain_type

TYPES = {
    "<class 'int'>": "a whole number",
    "<class 'float'>": "a number",
    "<class 'bool'>": "true or false",
    "<class 'list'>": "a list such as A,B",
    "<class 'dict'>": "settings such as {NAME: VALUE}",
}


def complaint(message: str, parser: ArgumentParser) -> str:
    """One line for a message of jsonargparse or argparse, with where to read more."""
    text = " ".join(message.split())
    for pattern, say in COMPLAINTS:
        match = re.search(pattern, text)
        if match:
            text = say(match, parser)
            break
    return f"{text} (see {parser.prog} --help)"


def _arguments_missing(match: re.Match[str], parser: ArgumentParser) -> str:
    spelled = {action.dest: action.option_strings[0] for action in options_of(parser)}
    missing = [spelled.get(name, name.upper()) for name in match[1].split(", ")]
    return f"{_short(parser)} needs {' and '.join(missing)}"


def _short(parser: ArgumentParser) -> str:
    return parser.prog.removeprefix("ncttt ")


def _wrong_value(match: re.Match[str], parser: ArgumentParser) -> str:
    name, wanted, value = match.groups()
    literal = re.fullmatch(r"typing\.Literal\[(.*)\]", wanted)
    expected = " or ".join(re.findall(r"'([^']*)'", literal[1])) if literal else TYPES.get(wanted, wanted)
    return f"{name.replace('_', '-')} must be {expected}; found {value!r}"


def _no_file(match: re.Match[str], parser: ArgumentParser) -> str:
    return f"there is no configuration {match[1]}"


def _no_yaml(match: re.Match[str], parser: ArgumentParser) -> str:
    return f"the configuration is no YAML of options: {match[1]}"


def _no_option(match: re.Match[str], parser: ArgumentParser) -> str:
    """An option or a key of a configuration that does not exist, with the nearest that do."""
    asked = ".".join(name for name in match.groups() if name).lstrip("-").split("=")[0].replace("-", "_")
    known = {*_keys(parser), "config", "print_config"}
    return f"no option {asked!r}{nearest(asked, sorted(known))}"


def _keys(parser: ArgumentParser) -> Iterator[str]:
    """The names of options, and of the keys inside those that are lists of settings."""
    for action in options_of(parser):
        yield action.dest
        for kind in get_args(plain_type(action)):
            if is_dataclass(kind):
                yield from (field.name for field in fields(kind))


def _too_much(match: re.Match[str], parser: ArgumentParser) -> str:
    return f"{_short(parser)} has no place for {match[1]!r}"


COMPLAINTS: tuple[tuple[str, Callable[[re.Match[str], ArgumentParser], str]], ...] = (
    (r"arguments are required: (.+)", _arguments_missing),
    (r"Parser key \"config\": File does not exist: '(.+)'", _no_file),
    (
        r"Parser key \"([\w.]+)\":.*?Expected an? (<.+?>|typing\.Literal\[.+?\]).*(?:Got|Given) value: (.*)",
        _wrong_value,
    ),
    (r"Parser key \"[\w.]+\": Unable to load config '(.+?)'", _no_file),
    (r"(?:Problems parsing|Unexpected) config: (.+)", _no_yaml),
    (r"(?:Group '([\w.]+)' does not accept )?[Oo]ption '([\w.:-]+)'", _no_option),
    (r"unrecognized arguments: (--[\w.-]+)", _no_option),
    (r"unrecognized arguments: (.+)", _too_much),
)
