"""One cell of a grid: everything that determines one row, and the key that stands for it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from ncttt.benchmark.scenes import Scene

Protocol = Literal["episodic", "online", "continual", "mixed"]
PROTOCOLS: tuple[Protocol, ...] = ("episodic", "online", "continual", "mixed")
SEQUENCES = ("continual", "mixed")  # one cell sees all corruptions of its grid


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A method with settings, on a checkpoint, on scenes, in a protocol.

    `episodic` forgets after each batch, `online` after each corruption, `continual` never over a sequence of
    corruptions, `mixed` never over images of all of them in one stream. `steps` are the step counts to predict after;
    the last is the method's own. `label` and `checkpoint` are what tables call the method and its model, which lies at
    `folder` (or in the zoo); the weights' digest is what counts.
    """

    scenes: tuple[Scene, ...]
    method: dict[str, Any]
    label: str
    checkpoint: str
    folder: str
    weights: str
    steps: tuple[int, ...]
    stop: str | float | None = None
    protocol: Protocol = "episodic"
    order: str = "random"
    batch_size: int = 128
    seed: int = 0
    threads: int = 1
    device: str = "cpu"

    @cached_property
    def key(self) -> str:
        """A digest of all that determines the row."""
        text = json.dumps(self.identity(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def identity(self) -> dict[str, Any]:
        """What the key stands for; names of files and labels are not in it, their contents are."""
        return {
            "images": [scene.name for scene in self.scenes],
            "method": self.method,
            "weights": self.weights,
            "steps": self.steps,
            "stop": self.stop,
            "protocol": self.protocol,
            "order": self.order,
            "batch_size": self.batch_size,
            "seed": self.seed,
            "threads": self.threads,
            "device": self.device.partition(":")[0],
        }

    def columns(self) -> dict[str, Any]:
        """The row's first columns: what was asked."""
        first = self.scenes[0]
        return {
            "data": first.pictures.data,
            "split": first.pictures.split,
            "corruption": "+".join(scene.corruption for scene in self.scenes),
            "severity": first.severity,
            "method": self.label,
            "checkpoint": self.checkpoint,
            "weights": self.weights[:16],
            "pictures": first.digest,
            "protocol": self.protocol,
            "order": self.order,
            "batch_size": self.batch_size,
            "seed": self.seed,
            "stop": None if self.stop is None else str(self.stop),
            "settings": json.dumps(self.method, sort_keys=True),
            "constants": first.constants,
            "threads": self.threads,
            "device": self.device,
        }
