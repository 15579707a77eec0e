"""The folder of a training: its configuration, where it ran, a metrics table, the state to resume from, the models."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from torch.optim import Optimizer

from ncttt.base.errors import InputError
from ncttt.base.files import replace_file
from ncttt.base.provenance import origin
from ncttt.data import ImageSet, batches
from ncttt.model.branched import Branched
from ncttt.training.epoch import Epoch, draw_curves, write_metrics
from ncttt.training.processes import place
from ncttt.training.state import load_state, read_facts, save_state
from ncttt.zoo.checkpoint import describe, load, save

STATE, METRICS, CONFIG, ENVIRONMENT = "state.safetensors", "metrics.csv", "config.json", "environment.json"


@dataclass
class Progress:
    """How far a training has come: whole epochs; of the one in hand steps, sums and seconds; the scale of float16."""

    history: list[Epoch]
    step: int = 0
    sums: tuple[float, ...] = (0.0, 0.0, 0.0)
    seconds: float = 0.0
    scaler: dict[str, Any] = field(default_factory=dict)

    @property
    def begun(self) -> bool:
        """Whether there is anything to resume from."""
        return bool(self.history or self.step)

    def facts(self) -> dict[str, Any]:
        """The progress as JSON values."""
        return asdict(self)

    @classmethod
    def from_facts(cls, facts: dict[str, Any]) -> Progress:
        """The progress that `facts` gave."""
        history = [Epoch(**epoch) for epoch in facts["history"]]
        return cls(history, facts["step"], tuple(facts["sums"]), facts["seconds"], facts["scaler"])


class Run:
    """A run folder; only the first process writes to it."""

    def __init__(self, folder: str | Path):
        self.folder, self.writes = Path(folder), place().first

    @property
    def begun(self) -> bool:
        """Whether there is a state to resume from."""
        return (self.folder / STATE).is_file()

    def begin(self, config: dict[str, Any], resume: bool) -> Progress:
        """Prepare the folder, or find the progress to resume from; a run is never overwritten unasked."""
        here = origin() | {"processes": place().world}
        if not self.begun:
            if self.writes:
                self.folder.mkdir(parents=True, exist_ok=True)
                self._write_json(CONFIG, config)
                self._write_json(ENVIRONMENT, here)
            return Progress([])
        if not resume:
            raise InputError(f"{self.folder} holds a training already; resume it, or choose another folder")
        self._check_same(config)
        if self.writes:
            before = json.loads((self.folder / ENVIRONMENT).read_text())
            self._write_json(ENVIRONMENT, before | {"resumed": [*before.get("resumed", []), here]})
        return Progress.from_facts(read_facts(self.folder / STATE))

    def restore(self, model: Branched, optimizers: Sequence[Optimizer]) -> None:
        """Read weights and the optimizers' memory of the last state."""
        load_state(self.folder / STATE, model, optimizers)

    def keep(self, model: Branched, optimizers: Sequence[Optimizer], progress: Progress) -> None:
        """Write the state to resume from and, after a whole epoch, metrics and models: the last and the best."""
        if not self.writes:
            return
        if progress.history and progress.step == 0:
            write_metrics(progress.history, self.folder / METRICS)
            save(model, self.folder / "last")
            if best_epoch(progress.history) == len(progress.history):
                save(model, self.folder / "best")
        save_state(self.folder / STATE, model, optimizers, progress.facts())

    def finish(self, model: Branched, held_out: ImageSet | None, batch_size: int, history: Sequence[Epoch]) -> None:
        """Write the last model and the curves, and calibrate the best model as the last one was."""
        if not self.writes:
            return
        save(model, self.folder / "last")
        if held_out is not None:
            net = None if describe(model)["architecture"] else copy.deepcopy(model.classifier)
            best = load(self.folder / "best", net).to(model.mean.device)
            best.calibrate(batches(held_out, batch_size, device=model.mean.device))
            save(best, self.folder / "best")
        draw_curves(history, self.folder / "curves.svg")

    def _check_same(self, config: dict[str, Any]) -> None:
        """A training goes on with the settings it began with, or not at all."""
        began = json.loads((self.folder / CONFIG).read_text())
        for part, settings in json.loads(json.dumps(config)).items():
            for name, value in settings.items():
                if began[part].get(name, value) != value:  # what was not recorded then cannot be compared
                    raise InputError(
                        f"{self.folder} was begun with {part} {name}={began[part][name]!r}; found {value!r}: "
                        "resume with the same, or choose another folder"
                    )

    def _write_json(self, name: str, content: dict[str, Any]) -> None:
        replace_file(self.folder / name, (json.dumps(content, indent=2) + "\n").encode())


def best_epoch(history: Sequence[Epoch]) -> int:
    """The number of the epoch with the highest held-out accuracy, or else the last one; of equals the later."""
    return max(history, key=lambda epoch: (epoch.held_out.get("accuracy", 0.0), epoch.number)).number
