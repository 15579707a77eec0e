"""The table of an attribution: the shares of each gain with their intervals, which only predictions can give.

`ncttt.report.shares` divides gains from rows alone, without intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import TYPE_CHECKING

from ncttt.report.table import Number, Table, table_of

if TYPE_CHECKING:
    from ncttt.benchmark.attribution import Attribution
    from ncttt.benchmark.statistics import Difference

ALWAYS = ("method", "checkpoint", "protocol")  # shown even where they are the same in every line


def attribution_table(attributions: Sequence[Attribution]) -> Table:
    """Accuracies of each subject in each of its variants, and the shares of its gain in points."""
    subjects = [asdict(attribution.subject) for attribution in attributions]
    shown = [name for name in subjects[0] if name in ALWAYS or len({subject[name] for subject in subjects}) > 1]
    variants = list(attributions[0].accuracy)
    shares = [field.name for field in fields(attributions[0]) if field.name not in ("subject", "accuracy")]
    body = [
        [
            *(str(subject[name]) for name in shown),
            *(Number(100 * attribution.accuracy[variant]) for variant in variants),
            *(in_points(getattr(attribution, share)) for share in shares),
        ]
        for subject, attribution in zip(subjects, attributions, strict=True)
    ]
    return table_of([*(name.replace("_", " ") for name in shown), *variants, *shares], body)


def in_points(gain: Difference) -> Number:
    """A difference of accuracies in percentage points, with its interval.

    >>> from ncttt.report.table import cell_text
    >>> from ncttt.benchmark.statistics import Difference
    >>> cell_text(in_points(Difference(0.021, 0.01, 0.032)))
    '+2.10 [+1.00, +3.20]'
    """
    return Number(100 * gain.mean, interval=(100 * gain.low, 100 * gain.high), signed=True)
