"""The parser of the command line: flags, dashes, help and complaints as `ncttt` wants them."""

import sys
from typing import Any, NoReturn

from jsonargparse import ArgumentParser

from ncttt.cli.complaints import complaint
from ncttt.cli.help import help_text


class Parser(ArgumentParser):
    """A parser in which `--flag` alone means `--flag=true`, and `--skip-bad` and `--skip_bad` are the same."""

    def add_argument(self, *args: Any, **kwargs: Any) -> Any:
        dashed = [name.replace("_", "-") for name in args if name.startswith("--") and "_" in name]
        if kwargs.get("type") is bool:
            kwargs.update(nargs="?", const=True)
        action = super().add_argument(*dashed, *args, **kwargs)
        action.needed = bool(kwargs.get("required"))  # jsonargparse hides its own mark while it parses
        return action

    def format_help(self, formatter: Any = None) -> str:
        """The help of a group of commands, or of one."""
        return help_text(self)

    def error(self, message: str, ex: Exception | None = None) -> NoReturn:
        """Say in one line what was wrong, and exit with code 2."""
        sys.stderr.write(f"ncttt: {complaint(message, getattr(ex, 'subcommand_parser', None) or self)}\n")
        raise SystemExit(2)
