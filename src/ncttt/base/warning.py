"""Warnings that point at the line of the user that caused them."""

import sys
import warnings

INNER = ("ncttt", "torch")  # packages between the user and what warns


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn, as of the innermost line that belongs neither to this package nor to torch."""
    frame, level = sys._getframe(1), 2
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in INNER:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
