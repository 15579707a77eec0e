"""Which stream a row was measured on: what its kind is called, and which domains it went through."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ncttt.data.sequences import Kind, parse_sequence, parted
from ncttt.report.accuracy import is_mixed

Row = Mapping[str, Any]
MIXED = "mixed"


def kind_of(row: Row) -> str:
    """The order of the images and the sequence of domains, in as few words as tell them from others.

    >>> [kind_of({"order": order}) for order in ("random", "random+visits(2)", "dirichlet(0.1)+gradual")]
    ['random', 'visits(2)', 'dirichlet(0.1) gradual']
    """
    order, sequence = _parted(row)
    if sequence == "once":
        return order
    return sequence if order == "random" else f"{order} {sequence}"


def kind_order(row: Row) -> tuple[bool, bool, str]:
    """A key to sort rows by the kind of their stream: shuffled images first, then other orders, then sequences."""
    order, sequence = _parted(row)
    return sequence != "once", order != "random", f"{order} {sequence}"


def domains_of(row: Row) -> list[Kind]:
    """Corruption and severity of each domain of a row's stream, as they come; a mixed stream is one domain.

    >>> stream = {"corruption": "fog+snow", "severity": 5, "order": "random"}
    >>> domains_of(stream), domains_of(stream | {"order": "mixed"})
    ([('fog', 5), ('snow', 5)], [('mixed', 5)])
    >>> domains_of(stream | {"order": "random+visits(2)", "severity": 3})
    [('fog', 3), ('snow', 3), ('fog', 3), ('snow', 3)]
    """
    severity = row.get("severity") or 0
    if is_mixed(row):
        return [(MIXED, severity)]
    names, (_, sequence) = row["corruption"].split("+"), _parted(row)
    if sequence == "once":
        return [(name, severity) for name in names]
    return parse_sequence(sequence).domains(names, severity)


def _parted(row: Row) -> tuple[str, str]:
    """Order and sequence; rows that do not tell are of shuffled images."""
    return parted(str(row.get("order") or "random"))
