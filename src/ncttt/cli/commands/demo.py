"""`ncttt demo`: a drifting stream live, then every method on embedded data, and a page of results."""

import json as json_module
import shutil
import sys
import textwrap
import time
from typing import Any

from ncttt import demo as demonstration
from ncttt import report
from ncttt.demo.run import run_demo

EXAMPLE = "ncttt demo --seed 1"
GROUP = "begin"


def demo(*, json: bool = False, **options: Any) -> None:
    """Show a frozen and an adapting model on a stream that drifts, then compare all methods on the same shifts.

    Args:
        json: Print the rows as JSON, for scripts.
    """
    began = time.monotonic()
    try:
        shown = run_demo(tell=_tell, watch=demonstration.watch, **options)
    except KeyboardInterrupt:
        _tell(
            "Stopped. The same command goes on from here: trainings and measurements that are done are not done again."
        )
        raise
    if json:
        print(json_module.dumps(shown.rows))
        return
    report.show(shown.table)
    print(f"{demonstration.explained(shown.rows)}\n\n{_wrapped(shown.verdict)}\n", flush=True)
    _tell(f"{time.monotonic() - began:.0f} s. The page: {shown.page}")
    _tell(NEXT[options["data"]])


def _tell(text: str) -> None:
    """What is not the result goes to standard error, so that the output can be piped."""
    print(_wrapped(text), file=sys.stderr, flush=True)


def _wrapped(text: str) -> str:
    """A sentence in lines of whole words, as wide as the terminal; a number keeps its percent sign."""
    width = shutil.get_terminal_size().columns
    kept = text.replace(" %", "\N{NO-BREAK SPACE}%")
    return textwrap.fill(kept, width, break_long_words=False, break_on_hyphens=False).replace("\N{NO-BREAK SPACE}", " ")


NEXT = {
    "digits": "Next: ncttt demo --seed 1; ncttt data get cifar10 && ncttt demo --data cifar10; ncttt adapt --help",
    "cifar10": "Next: ncttt bench --config study/severity5_episodic; ncttt adapt --help",
}
