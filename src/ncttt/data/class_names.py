"""Whether the classes of a model are those of a data set, by their names."""

from __future__ import annotations

from collections.abc import Sequence

from ncttt.base.errors import InputError


def check_same_classes(own: Sequence[str] | None, theirs: Sequence[str], model: str, data: str) -> None:
    """Raise an `InputError` where a model and a data set call a class differently, or have them in another order.

    Classes without names, or with numbers for names, may be any.

    >>> check_same_classes(["0", "1"], ["cat", "dog"], "model", "data")
    """
    if own is None or _numbered(own) or _numbered(theirs):
        return
    for number, (mine, other) in enumerate(zip(own, theirs, strict=False)):
        if mine != other:
            order = "the same classes in another order" if sorted(own) == sorted(theirs) else "other classes"
            raise InputError(
                f"class {number} of {model} is {mine!r}, that of {data} {other!r}: {order}, so that every accuracy "
                "would be wrong; use data with the classes of the model, or a model of these classes"
            )


def _numbered(names: Sequence[str]) -> bool:
    """Whether the names are numbers alone, as for classes that nobody has named."""
    return all(str(name).isdigit() for name in names)
