"""The help of `ncttt` and of its commands: groups, one line each, defaults, a worked example at the end."""

from __future__ import annotations

import argparse
import re
import shutil
import textwrap
from collections.abc import Iterable

from jsonargparse import ArgumentParser

from ncttt.cli.actions import commands_of, metavar, name_of, options_of, positionals_of, required, spelling
from ncttt.cli.examples import EXAMPLES
from ncttt.cli.groups import COMMANDS, FEW, OPTIONS, OTHER_COMMANDS, OTHER_OPTIONS, RECIPE

COMMON = {
    "-h, --help": "Show this help; after the name of a command, that of the command.",
    "--version": "Show the version.",
    "--debug": "Show where an error came from, instead of one line about it.",
    "--config FILE": "Take options from a YAML file; those on the command line go before.",
    "--print-config": "Print all options as such a file, and do nothing.",
}
Lines = list[str]


def help_text(parser: ArgumentParser) -> str:
    """The whole help of a parser."""
    name = name_of(parser)
    body = _of_commands(parser) if commands_of(parser) else _of_command(parser)
    examples = EXAMPLES.get(name.removeprefix("ncttt").strip(), ())
    usage = f"usage: {name} {_usage(parser)}".rstrip()
    parts = [usage, "", *_wrapped(parser.description or "", ""), "", *body, *_titled("example", _indented(examples))]
    return "\n".join(parts).rstrip() + "\n"


def _usage(parser: ArgumentParser) -> str:
    if commands_of(parser):
        return "COMMAND [OPTIONS]"
    needed = [f"{spelling(a)} {metavar(a)}" for a in options_of(parser) if required(a)]
    given = [metavar(a) for a in positionals_of(parser)]
    rest = ["[OPTIONS]"] if options_of(parser) else []
    return " ".join([*given, *needed, *rest])


def _of_commands(parser: ArgumentParser) -> Lines:
    """Commands in their groups; below `ncttt` itself also the options that all have."""
    known = {name: first_sentence(below.description or "") for name, below in commands_of(parser).items()}
    if name_of(parser) != "ncttt":
        return [*_titled("commands", _entries(known)), f"{name_of(parser)} COMMAND --help tells more.", ""]
    grouped = {title: [name for name in names if name in known] for title, names in COMMANDS.items()}
    rest = [name for name in known if not any(name in names for names in COMMANDS.values())]
    lines, column = [], max(map(len, known)) + 4
    for title, names in {**grouped, OTHER_COMMANDS: rest}.items():
        lines += _titled(title, _entries({name: known[name] for name in names}, column))
    return [*lines, *_titled("options", _entries(COMMON))]


def _of_command(parser: ArgumentParser) -> Lines:
    given = {metavar(a): _expand(a.help) for a in positionals_of(parser)}
    lines = _titled("arguments", _entries(given))
    told = {a.dest: (_invocation(a), _told(a)) for a in options_of(parser)}
    column = _column(invocation for invocation, _ in told.values())
    for title, actions in _grouped(options_of(parser)).items():
        lines += _titled(title, _entries(dict(told[a.dest] for a in actions), column))
    if options_of(parser):
        lines += [*_wrapped("--config, --print-config and --debug: see ncttt --help.", ""), ""]
    return lines


def _grouped(actions: list[argparse.Action]) -> dict[str, list[argparse.Action]]:
    """The options by the group that their name has, in one group if there are few."""
    if len(actions) <= FEW:
        return {"options": actions}
    groups: dict[str, list[argparse.Action]] = {title: [] for title in (*OPTIONS, OTHER_OPTIONS, RECIPE)}
    for action in actions:
        home = next((title for title, names in OPTIONS.items() if action.dest in names), OTHER_OPTIONS)
        groups[RECIPE if action.dest.split(".")[0] == "recipe" else home].append(action)
    return groups


def _invocation(action: argparse.Action) -> str:
    return f"{spelling(action)} {metavar(action)}".rstrip()


def _told(action: argparse.Action) -> str:
    """The help of an option, with its default where that says something."""
    if action.dest == "recipe":
        return "File with the settings below."
    if required(action):
        return f"{_expand(action.help)} (required)"
    default = action.default
    if default is None or default is False or default in (argparse.SUPPRESS, "", [], (), {}):
        return _expand(action.help)
    shown = f"[{', '.join(map(str, default))}]" if isinstance(default, (list, tuple)) else str(default)
    return f"{_expand(action.help)} (default: {shown.lower() if default is True else shown})"


def _expand(text: str | None) -> str:
    return (text or "").replace("%%", "%")


def first_sentence(text: str) -> str:
    """What comes before the first full stop, colon or semicolon.

    >>> first_sentence("Train jointly; killed, it goes on.")
    'Train jointly.'
    """
    return re.split(r"[;.:](?:\s|$)", text)[0] + "."


def _titled(title: str, lines: Lines) -> Lines:
    return [f"{title}:", *lines, ""] if lines else []


def _indented(lines: Iterable[str]) -> Lines:
    return [f"  {line}" for line in lines]


def _entries(told: dict[str, str], column: int | None = None) -> Lines:
    """Names to the left, what they mean to the right, from a column on."""
    column = column or _column(told)
    lines = []
    for name, text in told.items():
        head = f"  {name}"
        below = _wrapped(text, " " * column)
        lines += [head + below[0][len(head) :], *below[1:]] if len(head) < column - 1 and below else [head, *below]
    return lines


def _column(names: Iterable[str]) -> int:
    return min(max(map(len, names), default=0), 26) + 4


def _wrapped(text: str, indent: str) -> Lines:
    width = max(min(shutil.get_terminal_size().columns, 100), 40)
    wrapper = textwrap.TextWrapper(width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)
    listed = re.split(r"\n(?=\s*\w+: )", text)  # a list in a docstring, as `name: meaning`, stays one
    return [line for part in listed for line in wrapper.wrap(part)]
