"""Pace: how long batches and steps take, and how many steps a batch has time for."""

from __future__ import annotations

NEWEST = 0.2  # weight of the newest time in a mean that fades


class Pace:
    """Fading means of the seconds of a batch without steps and of one step.

    >>> pace = Pace(budget=0.1)
    >>> pace.add(0.02, steps=0), pace.add(0.06, steps=2)
    (None, None)
    >>> pace.affordable(4, waited=0.01), pace.affordable(4, waited=0.05), pace.affordable(4, waited=0.2)
    (3, 1, 0)
    """

    def __init__(self, budget: float | None):
        self._budget = budget
        self._batch: float | None = None
        self._step: float | None = None

    def affordable(self, steps: int, waited: float) -> int:
        """How many of the steps a batch that has waited for so many seconds can take within the budget."""
        if self._budget is None:
            return steps
        left = self._budget - waited - (self._batch or 0.0)
        if left <= 0:
            return 0
        # A time that is not known yet is found out by the first steps.
        return steps if not self._step else min(steps, int(left / self._step + 1e-9))

    def add(self, seconds: float, steps: int) -> None:
        """Learn from a batch that took so many seconds, with so many steps."""
        if steps:
            self._step = _faded(self._step, max(0.0, seconds - (self._batch or 0.0)) / steps)
        else:
            self._batch = _faded(self._batch, seconds)


def _faded(before: float | None, newest: float) -> float:
    return newest if before is None else before + NEWEST * (newest - before)
