"""The sequence of domains of a stream: each once, severities that rise and fall, visits, source images in between."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ncttt.base.errors import InputError
from ncttt.data.corruptions import CLEAN, SEVERITIES

KNOWN = "'once', or 'gradual', 'visits(N)' and 'clean_every(K)' joined by '+'"
Kind = tuple[str, int]  # corruption and severity


@dataclass(frozen=True)
class DomainSequence:
    """How corruptions become domains; as a text, `gradual+visits(2)+clean_every(3)`, or `once` for each of them once.

    `gradual`: each corruption rises to its severity and falls again, 1-2-3-4-5-4-3-2-1. `visits`: all of it so many
    times. `clean_every`: every so-manieth domain is clean images of the source; 0 for none.
    """

    gradual: bool = False
    visits: int = 1
    clean_every: int = 0

    def __post_init__(self) -> None:
        if self.visits < 1:
            raise InputError(f"a stream visits its domains a whole number of times from 1; found visits({self.visits})")
        if self.clean_every and self.clean_every < 2:
            raise InputError(f"clean_every takes a number from 2, else all is clean; found {self.clean_every}")

    def __str__(self) -> str:
        parts = ["gradual"] if self.gradual else []
        parts += [f"visits({self.visits})"] if self.visits > 1 else []
        parts += [f"clean_every({self.clean_every})"] if self.clean_every else []
        return "+".join(parts) or "once"

    def domains(self, corruptions: Sequence[str], severity: int) -> list[Kind]:
        """Corruption and severity of each domain; clean images have severity 0.

        >>> DomainSequence(gradual=True).domains(["fog"], 3)
        [('fog', 1), ('fog', 2), ('fog', 3), ('fog', 2), ('fog', 1)]
        >>> DomainSequence(visits=2, clean_every=3).domains(["fog", "snow"], 5)
        [('fog', 5), ('snow', 5), ('clean', 0), ('fog', 5), ('snow', 5), ('clean', 0)]
        """
        if not corruptions:
            raise InputError("a stream needs at least one domain; found no corruptions")
        if severity not in SEVERITIES:
            raise InputError(f"severities go from 1 to 5; found {severity!r}")
        levels = [*range(1, severity), *range(severity, 0, -1)] if self.gradual else [severity]
        once = [(name, level) for name in corruptions for level in ([0] if name == CLEAN else levels)]
        domains: list[Kind] = []
        for kind in once * self.visits:
            domains.append(kind)
            if self.clean_every and len(domains) % self.clean_every == self.clean_every - 1:
                domains.append((CLEAN, 0))
        return domains


def joined(order: str, sequence: str) -> str:
    """Order and sequence as one text, as rows have it: the order alone where each domain comes once.

    >>> joined("random", "once"), joined("by_class", "gradual")
    ('random', 'by_class+gradual')
    """
    return order if sequence == "once" else f"{order}+{sequence}"


def parted(text: str) -> tuple[str, str]:
    """Order and sequence of such a text.

    >>> parted("by_class+gradual+visits(2)")
    ('by_class', 'gradual+visits(2)')
    """
    order, _, sequence = text.partition("+")
    return order, sequence or "once"


def parse_sequence(text: str) -> DomainSequence:
    """The sequence that is spelled so; raises an `InputError` for what is none.

    >>> parse_sequence("gradual+visits(2)")
    DomainSequence(gradual=True, visits=2, clean_every=0)
    """
    parts = str(text).split("+")
    if parts == ["once"]:
        return DomainSequence()
    found: dict[str, int] = {}
    for part in parts:
        match = re.fullmatch(r"(gradual)|(visits|clean_every)\((\d{1,6})\)", part)
        name = (match[1] or match[2]) if match else ""
        if match is None or name in found:
            raise InputError(f"no sequence of domains {text!r}; use {KNOWN}")
        found[name] = int(match[3] or 1)
        if name == "clean_every" and found[name] == 0:
            raise InputError("clean_every takes a number from 2; found 0")
    return DomainSequence("gradual" in found, found.get("visits", 1), found.get("clean_every", 0))
