"""What the parser found wrong, as one line that says what was asked, what was found and what there is."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields

from jsonargparse import ArgumentParser

from ncttt.base.errors import nearest
from ncttt.benchmark.grid import Entry
from ncttt.cli.actions import commands_of, name_of, options_of

TYPES = {
    "<class 'int'>": "a whole number",
    "<class 'float'>": "a number",
    "<class 'bool'>": "true or false",
    "<class 'list'>": "a list such as [A, B]",
    "<class 'dict'>": "settings such as {NAME: VALUE}",
}
Said = tuple[str, ArgumentParser]  # the sentence, and the parser whose help tells more


def complaint(message: str, parser: ArgumentParser) -> str:
    """One line for a message of jsonargparse or argparse, with where to read more."""
    text = " ".join(message.split())
    for pattern, say in COMPLAINTS:
        match = re.search(pattern, text)
        if match:
            text, parser = say(match, parser)
            break
    return f"{text} (see {name_of(parser)} --help)"


def _no_command(match: re.Match[str], parser: ArgumentParser) -> Said:
    return f"no command {match[1]!r}{nearest(match[1], commands_of(parser))}", parser


def _command_missing(match: re.Match[str], parser: ArgumentParser) -> Said:
    parser = _descend(match[1].split("."), parser)[0]
    return f"{_short(parser)} needs a command: {', '.join(commands_of(parser))}", parser


def _arguments_missing(match: re.Match[str], parser: ArgumentParser) -> Said:
    found = [_descend(name.split("."), parser) for name in match[1].split(", ")]
    command = found[0][0]
    named = {action.dest: action.option_strings[0] for action in options_of(command)}
    missing = [named.get(name, name.upper()) for _, name in found]
    return f"{_short(command)} needs {' and '.join(missing)}", command


def _short(parser: ArgumentParser) -> str:
    return name_of(parser).removeprefix("ncttt ")


def _descend(words: list[str], parser: ArgumentParser) -> tuple[ArgumentParser, str]:
    """The parser that `data.get.name` belongs to, and the rest of the name."""
    while words and words[0] in commands_of(parser):
        parser, words = commands_of(parser)[words[0]], words[1:]
    return parser, ".".join(words)


def _wrong_value(match: re.Match[str], parser: ArgumentParser) -> Said:
    name, wanted, value = match.groups()
    literal = re.fullmatch(r"typing\.Literal\[(.*)\]", wanted)
    expected = " or ".join(re.findall(r"'([^']*)'", literal[1])) if literal else TYPES.get(wanted, wanted)
    return f"{name.replace('_', '-')} must be {expected}; found {value!r}", parser


def _no_file(match: re.Match[str], parser: ArgumentParser) -> Said:
    return f"there is no configuration {match[1]}", parser


def _no_yaml(match: re.Match[str], parser: ArgumentParser) -> Said:
    return f"the configuration is no YAML of options: {match[1]}", parser


def _no_option(match: re.Match[str], parser: ArgumentParser) -> Said:
    """An option or a key of a configuration that does not exist, with the nearest that do."""
    asked = match[1].lstrip("-").split("=")[0].replace("-", "_")
    known = {action.dest for action in options_of(parser)}
    known |= {field.name for field in fields(Entry)} if known & {"methods", "checkpoint"} else set()
    known |= {"help", "version", "debug"} if commands_of(parser) else {"config", "print_config"}
    return f"no option {asked!r}{nearest(asked, sorted(known))}", parser


def _too_much(match: re.Match[str], parser: ArgumentParser) -> Said:
    return f"{_short(parser)} has no place for {match[1]!r}", parser


COMPLAINTS: tuple[tuple[str, Callable[[re.Match[str], ArgumentParser], Said]], ...] = (
    (r"argument \S*subcommand: invalid choice: '([^']*)'", _no_command),
    (r"expected \"([\w.]*?)\.?subcommand\" to be one of", _command_missing),
    (r"arguments are required: (.+)", _arguments_missing),
    (r"Parser key \"config\": File does not exist: '(.+)'", _no_file),
    (
        r"Parser key \"([\w.]+)\":.*?Expected an? (<.+?>|typing\.Literal\[.+?\]).*(?:Got|Given) value: (.*)",
        _wrong_value,
    ),
    (r"Parser key \"[\w.]+\": Unable to load config '(.+?)'", _no_file),
    (r"(?:Problems parsing|Unexpected) config: (.+)", _no_yaml),
    (r"[Oo]ption '([\w.:-]+)'", _no_option),
    (r"unrecognized arguments: (--[\w.-]+)", _no_option),
    (r"unrecognized arguments: (.+)", _too_much),
)
