"""What the demonstration found, in sentences made from its numbers: who is ahead, and what NC-TTT's steps are worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ncttt.benchmark.intervals import FEWEST, Difference, paired_difference
from ncttt.data.corruptions import CLEAN
from ncttt.demo.setups import BATCH
from ncttt.demo.table import accuracies, shift_mean, shown_name

if TYPE_CHECKING:
    from ncttt.benchmark.store import Store

OURS = "nc_ttt"
Rows = Sequence[Mapping[str, Any]]


def verdict(store: Store, rows: Rows, plain: str) -> str:
    """Say who has the highest mean on the shifts, how NC-TTT compares, and what its steps add to batch statistics.

    Differences are paired over the predictions in `store`; one whose 95 % interval holds zero is no difference. With
    too few images for an interval it says so, and how many it takes.
    """
    means = {method: shift_mean(each) for method, each in accuracies(rows, plain).items()}
    rival = max(means.keys() - {OURS}, key=lambda method: means[method])
    own = next(row["checkpoint"] for row in rows if row["method"] == OURS)
    ours = _of(rows, OURS)
    over_rival = difference(store, ours, _of(rows, rival, plain if rival in ("source", "ptbn") else None))
    over_statistics = difference(store, ours, _of(rows, "ptbn", own))
    said = f"{ranking(means[OURS], rival, means[rival], over_rival)} {worth_of_steps(over_statistics)}"
    told = over_rival.has_interval and over_statistics.has_interval
    return said if told else f"{said} {too_few(ours[0]['images'])}"


def ranking(ours: float, rival: str, theirs: float, gap: Difference) -> str:
    """How NC-TTT compares with the best of the others, means in percent.

    >>> ranking(80.0, "tent", 81.5, Difference(-0.015, -0.025, -0.005))[:76]
    'NC-TTT does not win here: 80.0 % of the shifted images are right with NC-TTT'
    >>> ranking(80.0, "tent", 81.5, Difference(-0.015, -0.035, 0.005))[:74]
    'NC-TTT does not win here, it is statistically indistinguishable from TENT:'
    >>> ranking(80.0, "tent", 81.5, Difference(-0.015, -1.0, 1.0))[:75]
    'Whether NC-TTT or TENT is better here cannot be told with so few images: 80'
    """
    if not gap.has_interval:
        winner = f"Whether NC-TTT or {shown_name(rival)} is better here cannot be told with so few images"
    elif not gap.significant:
        winner = f"NC-TTT does not win here, it is statistically indistinguishable from {shown_name(rival)}"
    else:
        winner = f"{shown_name(OURS)} {'wins' if gap.mean > 0 else 'does not win'} here"
    return (
        f"{winner}: {ours:.1f} % of the shifted images are right with NC-TTT, {theirs:.1f} % with {shown_name(rival)}, "
        f"the best of the others: {in_points(gap)}."
    )


def worth_of_steps(gain: Difference) -> str:
    """What NC-TTT's steps add to batch statistics on its own model."""
    found = "which is significant" if gain.significant else "statistically indistinguishable from nothing"
    if not gain.has_interval:
        found = "which may be by chance"
    return f"Its steps add {in_points(gain)} to batch statistics on the same model, {found}."


def too_few(images: int) -> str:
    """What an interval would take, where there are too few images for one.

    >>> too_few(100)
    'An interval takes 200 images of each shift, 4 batches of 50; here are 100.'
    """
    enough = f"{FEWEST * BATCH} images of each shift, {FEWEST} batches of {BATCH}"
    return f"An interval takes {enough}; here are {images}."


def in_points(gain: Difference) -> str:
    """A difference of accuracies with its interval, in words.

    >>> in_points(Difference(0.021, 0.01, 0.032)), in_points(Difference(0.021, -1.0, 1.0))
    ('+2.1 points (95 % interval +1.0 to +3.2)', '+2.1 points (too few batches for an interval)')
    """
    mean, low, high = (round(100 * value, 1) + 0.0 for value in gain)  # + 0.0: no "-0.0"
    interval = f"95 % interval {low:+.1f} to {high:+.1f}" if gain.has_interval else "too few batches for an interval"
    return f"{mean:+.1f} points ({interval})"


def difference(store: Store, first: Rows, second: Rows) -> Difference:
    """The paired difference of rows that show the same shifts in the same order."""
    right = [[_right(store, row) for row in rows] for rows in (first, second)]
    return paired_difference(right[0], right[1], first[0]["batch_size"])


def _of(rows: Rows, method: str, checkpoint: str | None = None) -> Rows:
    """The rows of a method on the shifts, in the order of the grid."""
    own = [row for row in rows if row["method"] == method and row["corruption"] != CLEAN]
    return [row for row in own if checkpoint in (None, row["checkpoint"])]


def _right(store: Store, row: Mapping[str, Any]) -> Any:
    right = store.right(row["key"])
    assert right is not None, "the demonstration keeps predictions"
    return right[-1]
