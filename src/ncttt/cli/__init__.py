"""The command line `ncttt`: parse, call the library, print. What it does lives elsewhere."""

import os
import re
import sys
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, NoReturn

from jsonargparse import ArgumentParser, auto_cli

from ncttt import __version__
from ncttt.errors import InputError, nearest
from ncttt.grid import Entry

DESCRIPTION = "Test-time training of image classifiers."
Commands = dict[str, Any]  # a command's function, a group of them, or the group's help text under `_help`


class Parser(ArgumentParser):
    """A parser in which `--flag` alone means `--flag=true`, and `--skip-bad` and `--skip_bad` are the same.

    A list that is no option is given by its items alone.
    """

    def add_argument(self, *args: Any, **kwargs: Any) -> Any:
        dashed = [name.replace("_", "-") for name in args if name.startswith("--") and "_" in name]
        if kwargs.get("type") is bool:
            kwargs.update(nargs="?", const=True)
        if args[0][0] != "-" and getattr(kwargs.get("action"), "_typehint", None) == list[str]:
            kwargs = {"nargs": "+", "help": kwargs["help"]}  # several files, one after another
        return super().add_argument(*dashed, *args, **kwargs)

    def error(self, message: str, ex: Exception | None = None) -> NoReturn:
        """Say in one line what was wrong, with the nearest names for one that does not exist."""
        parser = getattr(ex, "subcommand_parser", None) or self
        text = " ".join(message.split())
        asked = re.search(r"[Oo]ption '([\w.-]+)'|unrecognized arguments: --([\w.-]+)", text)
        if asked:
            known = {name.strip("-").replace("-", "_") for name in parser._option_string_actions}
            known |= {field.name for field in fields(Entry)} if "methods" in known else set()
            text += nearest((asked[1] or asked[2]).replace("-", "_"), sorted(known))
        sys.stderr.write(f"ncttt: {text} (see {parser.prog.replace(' [options]', '')} --help)\n")
        raise SystemExit(2)


def commands() -> Commands:
    """Every command by name."""
    from ncttt.cli import bench, data, demo, info, report, rows, train, tune

    return {
        "demo": demo.demo,
        "train": train.train,
        "tune": tune.tune,
        "bench": bench.bench,
        "rows": {
            "_help": "Show, export and seed the rows of a benchmark.",
            "show": rows.show,
            "export": rows.export,
            "seed": rows.seed,
        },
        "report": report.report,
        "info": info.info,
        "data": {
            "_help": "List, fetch, verify, corrupt and show data sets.",
            "list": data.list_,
            "get": data.get,
            "check": data.check,
            "corrupt": data.corrupt,
            "sheet": data.sheet,
        },
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0, or 2 after one clear line about what the user did wrong."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments == ["--version"]:
        print(f"ncttt {__version__}")
        return 0
    debug = "--debug" in arguments
    arguments = [a for a in arguments if a != "--debug"] or ["--help"]
    try:
        auto_cli(commands(), args=arguments, parser_class=Parser, prog="ncttt", description=DESCRIPTION)
    except BrokenPipeError:
        # The reader of a pipe has gone (`ncttt info | head -1`); silence Python's own flush at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        print("ncttt: interrupted", file=sys.stderr)
        return 130
    except (InputError, OSError) as error:
        if debug:
            raise
        print(f"ncttt: {error}", file=sys.stderr)
        return 2
    return 0
