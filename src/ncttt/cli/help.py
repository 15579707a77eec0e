"""The help of `ncttt` and of its commands: groups, one line each, defaults, a worked example at the end."""

from __future__ import annotations

import re
import shutil
import textwrap
from argparse import SUPPRESS, Action, ArgumentParser
from collections.abc import Iterable

from ncttt.cli.actions import metavar, options_of, positionals_of, required, spelling
from ncttt.cli.catalogue import Command
from ncttt.cli.groups import FEW, GROUPS, OPTIONS, OTHER_OPTIONS, RECIPE

COMMON = {
    "-h, --help": "Show this help; after the name of a command, that of the command.",
    "--version": "Show the version.",
    "--debug": "Show where an error came from, instead of one line about it.",
    "--config FILE": "Take options from a YAML file, or by its name from one that ships, such as digits; those on the "
    "command line go before.",
    "--print-config": "Print all options as such a file, and do nothing.",
}
Lines = list[str]


def group_help(command: Command) -> str:
    """The help of a group of commands, or of `ncttt` itself."""
    texts = {name: first_sentence(below.help) for name, below in command.commands.items()}
    if command.name != "ncttt":
        body = [*_titled("commands", _entries(texts)), f"{command.name} COMMAND --help tells more.", ""]
        return _page(command.name, "COMMAND [OPTIONS]", command.help, body, command.examples)
    groups: dict[str, dict[str, str]] = {title: {} for title in GROUPS}
    for name, below in command.commands.items():
        groups.setdefault(below.group, {})[name] = texts[name]
    body, column = [], max(map(len, texts)) + 4
    for title, entries in groups.items():
        body += _titled(title, _entries(entries, column))
    body += _titled("options", _entries(COMMON))
    return _page(command.name, "COMMAND [OPTIONS]", command.help, body, command.examples)


def command_help(parser: ArgumentParser) -> str:
    """The help of a command."""
    body = _titled("arguments", _entries({metavar(a): _expand(a.help) for a in positionals_of(parser)}))
    told = {a.dest: (_invocation(a), _told(a)) for a in options_of(parser)}
    column = _column(invocation for invocation, _ in told.values())
    for title, actions in _grouped(options_of(parser)).items():
        body += _titled(title, _entries(dict(told[a.dest] for a in actions), column))
    if options_of(parser):
        body += [*_wrapped("--config, --print-config and --debug: see ncttt --help.", ""), ""]
    return _page(parser.prog, _usage(parser), parser.description or "", body, (parser.epilog or "").splitlines())


def _page(name: str, usage: str, text: str, body: Lines, examples: Iterable[str]) -> str:
    parts = [f"usage: {name} {usage}".rstrip(), "", *_wrapped(text, ""), "", *body]
    return "\n".join([*parts, *_titled("example", _indented(examples))]).rstrip() + "\n"


def _usage(parser: ArgumentParser) -> str:
    needed = [f"{spelling(a)} {metavar(a)}" for a in options_of(parser) if required(a)]
    given = [metavar(a) for a in positionals_of(parser)]
    rest = ["[OPTIONS]"] if options_of(parser) else []
    return " ".join([*given, *needed, *rest])


def _grouped(actions: list[Action]) -> dict[str, list[Action]]:
    """The options by the group that their name has, in one group if there are few."""
    if len(actions) <= FEW:
        return {"options": actions}
    groups: dict[str, list[Action]] = {title: [] for title in (*OPTIONS, OTHER_OPTIONS, RECIPE)}
    for action in actions:
        home = next((title for title, names in OPTIONS.items() if action.dest in names), OTHER_OPTIONS)
        groups[RECIPE if action.dest.split(".")[0] == "recipe" else home].append(action)
    return groups


def _invocation(action: Action) -> str:
    return f"{spelling(action)} {metavar(action)}".rstrip()


def _told(action: Action) -> str:
    """The help of an option, with its default where that says something."""
    if action.dest == "recipe":
        return "File with the settings below."
    if required(action):
        return f"{_expand(action.help)} (required)"
    default = action.default
    if default is None or default is False or default in (SUPPRESS, "", [], (), {}):
        return _expand(action.help)
    shown = ",".join(map(str, default)) if isinstance(default, (list, tuple)) else str(default)
    return f"{_expand(action.help)} (default: {shown.lower() if default is True else shown})"


def _expand(text: str | None) -> str:
    return (text or "").replace("%%", "%")


def first_sentence(text: str) -> str:
    """What comes before the first full stop, colon or semicolon.

    >>> first_sentence("Train jointly; killed, it goes on.")
    'Train jointly.'
    """
    return re.split(r"[;.:](?:\s|$)", text)[0] + "." if text else ""


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
