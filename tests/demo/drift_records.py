"""Made-up records of a drifting stream, for tests of what shows them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from ncttt.benchmark.drifting import DriftRecord

DOMAINS = ("clean", "frost", "glass_blur", "contrast", "clean")


def records(domains: Sequence[str] = DOMAINS, batches: int = 4, images: int = 50) -> list[DriftRecord]:
    """Clean images are told by both models, shifted ones by the adapted one alone, under an alarm."""
    made = []
    for number in range(len(domains) * batches):
        domain = number // batches
        clean = domains[domain] == "clean"
        accuracies = (0.99, 0.98, 0.99) if clean else (0.25, 0.75, 0.8)
        said = (0.4, False, 0, "left to source") if clean else (1e-20, True, 2, "steps")
        made.append(DriftRecord(domain, domains[domain], images, *accuracies, number, *said))
    return made


@dataclass
class Played:
    """A stream that plays records instead of running a model; it may be interrupted before one of them."""

    played: Sequence[DriftRecord]
    domains: Sequence[str] = DOMAINS
    data: str = "digits"
    interrupted: int | None = None

    @property
    def stream(self) -> Any:
        return SimpleNamespace(domains=self.domains, images=sum(r.images for r in self.played) // len(self.domains))

    def __len__(self) -> int:
        return len(self.played)

    def __iter__(self) -> Iterator[DriftRecord]:
        for record in self.played:
            if record.batch == self.interrupted:
                raise KeyboardInterrupt
            yield record
