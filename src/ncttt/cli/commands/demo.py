"""`ncttt demo`: the main job in some minutes, on embedded data, with every method and a page of results."""

import json as json_module
import sys
import time
from typing import Any

from ncttt import report
from ncttt.demo.run import run_demo

EXAMPLE = "ncttt demo --seed 1"
GROUP = "begin"


def demo(*, json: bool = False, **options: Any) -> None:
    """Train, shift the test images, adapt to them without labels by every method, and show who gained what.

    Args:
        json: Print the rows as JSON, for scripts.
    """
    began = time.monotonic()
    shown = run_demo(tell=_tell, **options)
    if json:
        print(json_module.dumps(shown.rows))
        return
    report.show(shown.table)
    print(EXPLAINED.format(**options))
    _tell(f"{time.monotonic() - began:.0f} s. The page: {shown.page}")
    _tell(NEXT[options["data"]])


def _tell(text: str) -> None:
    """What is not the result goes to standard error, so that the output can be piped."""
    print(text, file=sys.stderr, flush=True)


EXPLAINED = """\
Accuracy in percent, {images} images of each kind in batches of 100, each adapted to anew, without labels; seed {seed}.
"statistics" is what the batch's own statistics gave over the source's on the method's own model, "steps" what the
method's steps gave on top. With so few images, differences of a point or two are chance."""
NEXT = {
    "digits": "Next: ncttt demo --seed 1; ncttt data get cifar10 && ncttt demo --data cifar10; ncttt adapt --help",
    "cifar10": "Next: ncttt bench --config study/severity5_episodic; ncttt adapt --help",
}
