"""One cell of a grid: everything that determines one row, and the key that stands for it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ncttt.adapt.protocols import PROTOCOLS
from ncttt.benchmark.scenarios import Scenario
from ncttt.data.corruptions import CLEAN
from ncttt.data.orders import parse_order
from ncttt.data.sequences import joined
from ncttt.methods.settings import as_first_recorded


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A method with settings, on a checkpoint, on a stream through scenarios.

    `protocol` says when the method forgets, `order` how the images of a scenario come, `sequence` how corruptions
    became scenarios. `steps` are the step counts to predict after; the last is the method's own. `label` and
    `checkpoint` are what tables call the method and its model, which lies at `folder` (or in the zoo); the weights'
    digest is what counts. `calibration` holds the source images that the method's facts are measured on, if it needs
    any.
    """

    scenarios: tuple[Scenario, ...]
    method: dict[str, Any]
    label: str
    checkpoint: str
    folder: str
    weights: str
    steps: tuple[int, ...]
    stop: str | float | None = None
    protocol: str = "episodic"
    order: str = "random"
    sequence: str = "once"
    batch_size: int = 128
    seed: int = 0
    threads: int = 1
    device: str = "cpu"
    fast: bool = False
    calibration: Scenario | None = None

    @cached_property
    def key(self) -> str:
        """A digest of all that determines the row."""
        text = json.dumps(self.identity(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    @property
    def remembers(self) -> bool:
        """Whether batches share what was learned."""
        return PROTOCOLS.find(self.protocol).remembers

    @property
    def mixed(self) -> bool:
        """Whether images of all scenarios come in one shuffled stream."""
        return parse_order(self.order).mixed

    @property
    def corruptions(self) -> list[str]:
        """The corruptions of its scenarios, each once, as they come."""
        return list(dict.fromkeys(scenario.corruption for scenario in self.scenarios))

    @property
    def shifts(self) -> list[str]:
        """The corruptions, without the clean images that come between them."""
        return [name for name in self.corruptions if name != CLEAN] or [CLEAN]

    @property
    def severity(self) -> int:
        """The highest severity that it comes to."""
        return max(scenario.severity for scenario in self.scenarios)

    @property
    def title(self) -> str:
        """The cell in a few words."""
        names = self.shifts
        where = f"{names[0] if len(names) == 1 else f'{len(names)} corruptions'} {self.severity}"
        how = f"{self.protocol}, mixed" if self.mixed else self.protocol
        how += "" if self.sequence == "once" else f", {self.sequence}"
        return f"{self.label} on {self.checkpoint}, {where}, {how}, seed {self.seed}"

    def identity(self) -> dict[str, Any]:
        """What the key stands for; names of files and labels are not in it, their contents are.

        The sequence is in it as what it gives: all scenarios as they come.
        """
        protocol, order = self.protocol, self.order
        if self.mixed and protocol == "continual":  # a protocol of its own when the first such rows were measured
            protocol, order = "mixed", order[len("mixed(") : -1] or "random"
        kind = self.device.partition(":")[0]
        facts = {
            "images": [scenario.name for scenario in self.scenarios],
            "method": as_first_recorded(self.method),
            "weights": self.weights,
            "steps": self.steps,
            "stop": self.stop,
            "protocol": protocol,
            "order": order,
            "batch_size": self.batch_size,
            "seed": self.seed,
            "threads": self.threads,
            "device": kind,
        }
        if self.calibration is not None:
            facts["calibration"] = self.calibration.name
        return facts | {"fast": True} if self.fast and kind == "cuda" else facts  # elsewhere it changes nothing

    def columns(self) -> dict[str, Any]:
        """The row's first columns: what was asked."""
        first = self.scenarios[0]
        return {
            "data": first.draw.data,
            "split": first.draw.split,
            "corruption": "+".join(self.shifts),
            "severity": self.severity,
            "method": self.label,
            "checkpoint": self.checkpoint,
            "weights": self.weights[:16],
            "images_digest": first.digest,
            "protocol": self.protocol,
            "order": joined(self.order, self.sequence),
            "batch_size": self.batch_size,
            "seed": self.seed,
            "stop": None if self.stop is None else str(self.stop),
            "settings": json.dumps(self.method | self._calibrated_on(), sort_keys=True),
            "constants": first.constants,
            "threads": self.threads,
            "device": self.device,
        }

    def _calibrated_on(self) -> dict[str, str]:
        """What a row says, among the settings, of the source images that the method has seen."""
        if self.calibration is None:
            return {}
        draw = self.calibration.draw
        return {"calibrated_on": f"{draw.data} {draw.split} {self.calibration.digest}"}
