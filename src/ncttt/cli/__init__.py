"""The command line `ncttt`: parse, call the library, print. What it does lives elsewhere."""

import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ncttt import __version__
from ncttt.base.errors import InputError, one_line
from ncttt.cli.catalogue import find
from ncttt.cli.help import group_help


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0, 2 after a clear line on what the user did wrong, 1 after a bug."""
    _open_streams()
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments == ["--version"]:
        print(f"ncttt {__version__}")
        return 0
    debug = "--debug" in arguments
    arguments = [a for a in arguments if a != "--debug"] or ["--help"]
    try:
        with _plain_warnings():
            _run(arguments)
        sys.stdout.flush()  # here, so that a reader who has gone is noticed where it can be answered
    except BrokenPipeError:
        # The reader of a pipe has gone (`ncttt info | head -1`); silence Python's own flush at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        print("ncttt: interrupted; what was finished is kept", file=sys.stderr)
        return 130
    except (InputError, OSError) as error:
        if debug:
            raise
        print(f"ncttt: {one_line(str(error))}", file=sys.stderr)
        return 2
    except Exception as error:
        if debug:
            raise
        what = one_line(f"{type(error).__name__}: {error}")
        print(f"ncttt: {what}; this is a bug in ncttt: please report it with what --debug prints", file=sys.stderr)
        return 1
    return 0


def _open_streams() -> None:
    """Let what is printed go nowhere where a caller has closed the stream (`ncttt info >&-`)."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - as long as the process


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Print warnings as one line each, without the place in the code that they come from."""
    with warnings.catch_warnings():
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = lambda message, *rest: print(f"ncttt: {one_line(str(message))}", file=sys.stderr)
        yield


def _run(arguments: Sequence[str]) -> None:
    command, rest = find(arguments)
    if command.commands:
        print(group_help(command), end="")
        raise SystemExit(0)  # as the help of a command ends
    from ncttt.cli.parser import run_command  # jsonargparse takes 0.2 s, which a list of commands does without

    run_command(command, rest)
