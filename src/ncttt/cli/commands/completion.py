"""`ncttt completion`: a script that completes commands, options and their choices in a shell."""

from argparse import Action, ArgumentParser
from typing import Any, Literal

import shtab

from ncttt.cli.actions import choices, metavar, options_of, positionals_of, spelling
from ncttt.cli.catalogue import Command, all_commands
from ncttt.cli.parser import parser_of

EXAMPLE = 'eval "$(ncttt completion bash)"   # in ~/.bashrc'
GROUP = "shell"


def completion(shell: Literal["bash", "zsh", "fish", "tcsh"]) -> None:
    """Print a script that completes commands and options.

    Args:
        shell: bash, zsh, fish or tcsh.
    """
    parser = ArgumentParser(prog="ncttt", description=all_commands().help)
    parser.add_argument("--version", action="store_true", help="Show the version.")
    _fill(parser, all_commands())
    print(shtab.complete(parser, shell))


def _fill(parser: ArgumentParser, command: Command) -> None:
    """Copy what a command takes into a plain parser, which is what shtab reads."""
    parser.add_argument("--debug", action="store_true", help="Show where an error came from.")
    if command.commands:
        below = parser.add_subparsers()
        for word, other in command.commands.items():
            _fill(below.add_parser(word, help=other.help, description=other.help), other)
        return
    own = parser_of(command)
    for action in positionals_of(own):
        _copy(parser, action, action.dest)
    for action in options_of(own):
        _copy(parser, action, spelling(action))
    if options_of(own):
        parser.add_argument("--print-config", action="store_true", help="Print all options as a file.")
        config: Any = parser.add_argument("--config", help="Take options from a YAML file.")
        config.complete = shtab.FILE


def _copy(parser: ArgumentParser, action: Action, name: str) -> None:
    if action.option_strings and not metavar(action):
        parser.add_argument(name, action="store_true", help=action.help)
        return
    copy: Any = parser.add_argument(name, help=action.help, nargs=action.nargs if action.nargs == "+" else None)
    if choices(action):
        copy.choices = choices(action)
    elif metavar(action) not in ("N", "X"):
        copy.complete = shtab.FILE
