"""Numbers that somebody gives, refused by name where they make no sense; no torch."""

from __future__ import annotations

import math
from typing import Any

from ncttt.base.errors import InputError, shown

# Far above what is useful and below what overflows: NumPy and scikit-learn take seeds of 32 bits.
LARGEST_SEED = 2**32 - 1
MOST_THREADS = 1024  # of a process, and processes of a run
LARGEST = 2**31 - 1  # of sizes, steps and counts


def check_whole(name: str, value: Any, least: int = 0, most: int = LARGEST) -> None:
    """Raise an `InputError` unless this is a whole number from `least` to `most`.

    >>> check_whole("batch_size", 0, 1)
    Traceback (most recent call last):
        ...
    ncttt.base.errors.InputError: batch_size must be a whole number from 1; found 0
    """
    if isinstance(value, bool) or not hasattr(value, "__index__") or not least <= value <= most:
        limit = f" to {most}" if hasattr(value, "__index__") and value > most else ""
        raise InputError(f"{name} must be a whole number from {least}{limit}; found {shown(value)}")


def check_seed(name: str, value: Any) -> None:
    """Raise unless this can seed every generator."""
    check_whole(name, value, 0, LARGEST_SEED)


def check_threads(name: str, value: Any) -> None:
    """Raise unless so many threads, or processes, can be started; None leaves the number to the program."""
    if value is not None:
        check_whole(name, value, 1, MOST_THREADS)


def check_rate(name: str, value: Any, *, zero: bool = True) -> None:
    """Raise unless this is a finite number that is not negative, nor zero unless that is allowed."""
    if not (isinstance(value, int | float) and math.isfinite(value) and (value > 0 or (zero and value == 0))):
        raise InputError(f"{name} must be finite and {'not negative' if zero else 'positive'}; found {shown(value)}")
