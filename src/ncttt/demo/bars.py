"""Bars of block characters: values between 0 and 1 as columns of text, and labels under them."""

from __future__ import annotations

from collections.abc import Sequence

BLOCKS = " ▁▂▃▄▅▆▇█"


def columns_of(values: Sequence[float], total: int, width: int) -> list[float | None]:
    """Values of the first of `total` places as `width` columns: means where there are fewer columns than places.

    >>> columns_of([0.0, 1.0, 0.5], total=4, width=8)
    [0.0, 0.0, 1.0, 1.0, 0.5, 0.5, None, None]
    >>> columns_of([0.0, 1.0, 0.5], total=4, width=2)
    [0.5, 0.5]
    """
    columns: list[float | None] = []
    for column in range(width):
        first = column * total // width
        here = values[first : max(first + 1, (column + 1) * total // width)]
        columns.append(sum(here) / len(here) if here else None)
    return columns


def bars(values: Sequence[float | None], height: int) -> list[str]:
    """Rows of text, the top one first, in which each value is a bar of at least an eighth; None is empty.

    >>> bars([0.0, 0.5, 1.0, None], height=2)
    ['  █ ', '▁██ ']
    """
    eighths = [0 if value is None else max(1, round(8 * height * value)) for value in values]
    return ["".join(BLOCKS[min(8, max(0, each - 8 * row))] for each in eighths) for row in reversed(range(height))]


def labels_under(names: Sequence[str], width: int) -> str:
    """Names side by side, each at the beginning of its equal share of the width, and cut where that is too short.

    >>> labels_under(["clean", "fog"], 12)
    '│clean│fog  '
    >>> labels_under(["Gaussian noise", "fog"], 12)
    '│Gaus…│fog  '
    """
    ends = [-(-number * width // len(names)) for number in range(len(names) + 1)]  # where `columns_of` begins
    return "".join("│" + _cut(name, right - left - 1) for name, left, right in zip(names, ends, ends[1:], strict=False))


def _cut(name: str, width: int) -> str:
    return f"{name:{width}}" if len(name) <= width else f"{name[: max(0, width - 1)]}…"[: max(0, width)]
