"""Severities and corruptions as they are typed."""

import re

from ncttt.base.errors import InputError, nearest


def parse_severities(text: str) -> tuple[int, ...]:
    """Severities from `5`, `1-5` or `1,3,5`.

    >>> parse_severities("1-3,5")
    (1, 2, 3, 5)
    """
    found: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"\s*([1-5])(?:-([1-5]))?\s*", part)
        first, last = (match[1], match[2] or match[1]) if match else ("", "")
        if not match or first > last:
            raise InputError(f"severities go from 1 to 5 and look like 5, 1-5 or 1,3,5; found {text!r}")
        found.update(range(int(first), int(last) + 1))
    return tuple(sorted(found))


def parse_corruptions(text: str, benchmark: tuple[str, ...], extra: tuple[str, ...]) -> tuple[str, ...]:
    """Names of corruptions from a comma-separated list, `benchmark`, or `all`.

    >>> parse_corruptions("fog, snow", ("snow", "fog"), ("spatter",))
    ('fog', 'snow')
    """
    known = (*benchmark, *extra)
    if text in ("all", "benchmark"):
        return known if text == "all" else tuple(benchmark)
    names = tuple(part.strip() for part in text.split(","))
    for name in names:
        if name not in known:
            raise InputError(f"no corruption {name!r}{nearest(name, known)}")
    return names
