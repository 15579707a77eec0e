"""The parser of a command: flags, dashes, help and complaints as `ncttt` wants them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from jsonargparse import ArgumentParser, auto_cli, capture_parser

from ncttt.base.errors import InputError, one_line
from ncttt.base.yaml_limits import check_yaml
from ncttt.cli.catalogue import Command
from ncttt.cli.complaints import complaint
from ncttt.cli.help import command_help
from ncttt.cli.lists import gathered, items_of
from ncttt.configs import checked, find, names


def run_command(command: Command, arguments: Sequence[str]) -> None:
    """Parse the arguments of a command and run it."""
    examples = "\n".join(command.examples)
    auto_cli(command.load(), args=list(arguments), parser_class=Parser, prog=command.name, epilog=examples)


def parser_of(command: Command) -> ArgumentParser:
    """The parser of a command, to look at or to parse with; nothing runs."""
    return capture_parser(lambda: run_command(command, []))


CONFIGURED = ("--config", "--recipe")  # options that take a file of options


class Parser(ArgumentParser):
    """A parser in which `--flag` alone means `--flag=true`, and `--skip-bad` and `--skip_bad` are the same.

    Lists are written in any of the ways of `ncttt.cli.lists`; a tuple of words, and a list of them that is no option,
    word by word, too: `--images one two`.
    """

    def add_argument(self, *args: Any, **kwargs: Any) -> Any:
        positional = not args[0].startswith("-")
        dashed = [name.replace("_", "-") for name in args if name.startswith("--") and "_" in name]
        if kwargs.get("type") is bool or _typehint(kwargs) == bool | None:
            kwargs.update(nargs="?", const=True)
        if _typehint(kwargs) in ((tuple[str, ...], list[str]) if positional else (tuple[str, ...],)):
            kwargs = {key: value for key, value in kwargs.items() if key == "help" or not positional}
            kwargs = {**kwargs, "action": "store", "type": str, "nargs": "+"}
        action: Any = super().add_argument(*dashed, *args, **kwargs)
        if action is not None:  # as for a group of options
            action.needed = bool(kwargs.get("required"))  # jsonargparse hides its own mark while it parses
        return action

    def parse_args(self, args: Sequence[str] | None = None, *more: Any, **settings: Any) -> Any:
        """Parse words; --config takes the name of a configuration that ships, as well as a file."""
        words = sys.argv[1:] if args is None else args
        return super().parse_args(gathered(self._with_files(words), self), *more, **settings)

    def _with_files(self, words: Sequence[str]) -> list[str]:
        try:
            for word in words:
                _check_word(word)
            return with_files(self.prog.removeprefix("ncttt "), words)
        except InputError as error:
            self.error(str(error))

    def _get_values(self, action: Any, arg_strings: list[str]) -> Any:
        several = action.nargs == "+" and not action.option_strings
        return super()._get_values(action, items_of(arg_strings) if several else arg_strings)

    def _parse_optional(self, arg_string: str) -> Any:
        # jsonargparse knows that this option needs no value by its name with an underscore alone.
        return super()._parse_optional("--print_config" if arg_string == "--print-config" else arg_string)

    def format_help(self, formatter: Any = None) -> str:
        """The help of the command."""
        return command_help(self)

    def error(self, message: str, ex: Exception | None = None) -> NoReturn:
        """Say in one line what was wrong, and exit with code 2."""
        sys.stderr.write(f"ncttt: {one_line(complaint(message, self))}\n")
        raise SystemExit(2)


def with_files(command: str, words: Sequence[str]) -> list[str]:
    """The words after a command, with the file of each configuration that --config names."""
    found, ships = list(words), bool(names(command))
    for place, word in enumerate(words):
        option, equals, value = word.partition("=")
        if option in CONFIGURED and equals:
            found[place] = f"{option}={_file(command, option, value, ships)}"
        elif place and words[place - 1] in CONFIGURED:
            found[place] = _file(command, words[place - 1], word, ships)
    return found


def _file(command: str, option: str, value: str, ships: bool) -> str:
    if option == "--config" and ships:
        return str(find(command, value))
    return str(checked(value)) if Path(value).exists() else value


def _check_word(word: str) -> None:
    """Refuse what no option can mean and what would break the parser: a null byte, and YAML without end."""
    option, _, value = word.partition("=") if word.startswith("-") else ("", "", word)
    if "\0" in word:
        raise InputError(f"an argument has no null byte; found {word!r}")
    check_yaml(value, option or "an argument")


def _typehint(settings: dict[str, Any]) -> Any:
    return getattr(settings.get("action"), "_typehint", None)
