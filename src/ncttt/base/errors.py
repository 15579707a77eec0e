"""The one exception that means: what was asked cannot be done, and here is why."""

import difflib
from collections.abc import Iterable
from typing import Any

LONGEST = 1000  # letters of a message on a terminal


class InputError(ValueError):
    """What the caller asked for is wrong; the message names what was asked, found and expected.

    The command line prints it as one line and exits with code 2.
    """


class Unreachable(InputError):
    """The address cannot be had now; another source may do."""


def printable(text: str) -> str:
    r"""A text as one line that cannot steer a terminal: control characters and bytes that are no UTF-8 are escaped.

    >>> print(printable("a\nb \x1b[31m \udcff é"))
    a\nb \x1b[31m \udcff é
    """
    return "".join(c if c.isprintable() or c == " " else c.encode("unicode_escape").decode() for c in text)


def one_line(text: str) -> str:
    """A message for a terminal: printable, and cut in the middle where it repeats something endless.

    >>> len(one_line("x" * 5000))
    1000
    """
    text = printable(text)
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} ... {text[5 - LONGEST // 2 :]}"


def shown(value: Any) -> str:
    """A value in few characters, for an error.

    >>> shown("x" * 5000), shown(10**5000)  # Python refuses to write whole numbers of more than 4300 digits
    ("'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", 'a number of more than 30 digits')
    """
    if isinstance(value, int) and abs(value) >= 10**30:
        return "a number of more than 30 digits"
    try:
        return printable(f"{value!r:.60}")
    except Exception:  # somebody else's repr
        return type(value).__name__


def nearest(name: str, names: Iterable[str]) -> str:
    """A "; did you mean ...?" suffix with the names closest to `name`, or the first few names there are.

    >>> nearest("layr2", ["layer1", "layer2", "fc"])
    "; did you mean 'layer2' or 'layer1'?"
    """
    names = list(names)
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    if close:
        return f"; did you mean {' or '.join(repr(n) for n in close)}?"
    listed = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
    return f"; there are: {listed}" if names else "; there are none"
