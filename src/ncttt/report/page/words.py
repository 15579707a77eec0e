"""Numbers and lists as the sentences of the page have them."""

from __future__ import annotations

from collections.abc import Sequence

EXACT = 6  # decimals that are more than noise of the arithmetic, so that sentences and charts round alike


def percent(value: float) -> str:
    """An accuracy in percent.

    >>> percent(78.04)
    '78.0 %'
    """
    return f"{round(value, EXACT):.1f} %"


def points(value: float) -> str:
    """A gain in points, with its sign.

    >>> points(2.8499999999999), points(-0.31)
    ('+2.9', '-0.3')
    """
    return f"{round(value, EXACT):+.1f}"


def listed(names: Sequence[str]) -> str:
    """Names as a sentence has them.

    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
