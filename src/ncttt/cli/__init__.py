"""The command line `ncttt`: parse, call the library, print. What it does lives elsewhere."""

import os
import sys
from collections.abc import Sequence
from typing import Any

from jsonargparse import ArgumentParser, auto_cli, capture_parser

from ncttt import __version__
from ncttt.base.errors import InputError
from ncttt.cli.parser import Parser

DESCRIPTION = "Test-time training of image classifiers."
Commands = dict[str, Any]  # a command's function, a group of them, or the group's help text under `_help`


def command_table() -> Commands:
    """Every command by name."""
    from ncttt.cli.commands import adapt, bench, completion, data, demo, figures, info, report, rows, train, tune
    from ncttt.cli.commands.rows import export, seed, show

    return {
        "demo": demo.demo,
        "adapt": adapt.adapt,
        "train": train.train_command,
        "tune": tune.tune,
        "bench": bench.bench,
        "rows": {
            "_help": rows.__doc__,
            "show": show.show,
            "export": export.export,
            "seed": seed.seed,
        },
        "report": report.report,
        "figures": figures.figures,
        "info": info.info,
        "data": {
            "_help": "List, fetch, verify, corrupt and show data sets.",
            "list": data.list_,
            "get": data.get,
            "check": data.check,
            "corrupt": data.corrupt,
            "sheet": data.sheet,
        },
        "completion": completion.completion,
    }


def run(arguments: Sequence[str]) -> None:
    """Parse the arguments and run the command they name."""
    auto_cli(command_table(), args=list(arguments), parser_class=Parser, prog="ncttt", description=DESCRIPTION)


def command_parser() -> ArgumentParser:
    """The parser of all commands, to look at or to parse with; nothing runs."""
    return capture_parser(lambda: run([]))


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0, or 2 after one clear line about what the user did wrong."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments == ["--version"]:
        print(f"ncttt {__version__}")
        return 0
    debug = "--debug" in arguments
    arguments = [a for a in arguments if a != "--debug"] or ["--help"]
    try:
        run(arguments)
    except BrokenPipeError:
        # The reader of a pipe has gone (`ncttt info | head -1`); silence Python's own flush at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        print("ncttt: interrupted; what was finished is kept", file=sys.stderr)
        return 130
    except (InputError, OSError) as error:
        if debug:
            raise
        print(f"ncttt: {error}", file=sys.stderr)
        return 2
    return 0
