"""The folder of a training: configuration, metrics, the last and the best model, and the state to resume from."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as serialize
from torch import Tensor, nn
from torch.optim import Optimizer

from ncttt.base.errors import InputError
from ncttt.base.files import replace_file
from ncttt.base.locks import alone_with
from ncttt.base.provenance import origin
from ncttt.data import Batches, LoadedBatches
from ncttt.model.branched import Branched
from ncttt.training.epoch import Epoch, draw_curves, write_metrics
from ncttt.training.processes import place
from ncttt.training.recipe import Recipe
from ncttt.zoo.checkpoint import check_fit, completed, describe, load, save

STATE, METRICS, CONFIG, ENVIRONMENT = "state.safetensors", "metrics.csv", "config.json", "environment.json"
ADDED = {"warmup_steps": 0}  # settings of recipes that came later, and what older trainings did


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

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep the folder to this training: two at a time would mix their files."""
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        with alone_with(self.folder) if self.writes else nullcontext():
            yield

    def as_begun(self, recipe: Recipe) -> Recipe:
        """The recipe for resuming: a setting that did not exist yet when the run was begun is as it was then."""
        if not self.begun:
            return recipe
        recorded = json.loads((self.folder / CONFIG).read_text())["recipe"]
        return recipe.but(**{name: value for name, value in ADDED.items() if name not in recorded})

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

    def finish(self, model: Branched, held_out: Batches | LoadedBatches | None, history: Sequence[Epoch]) -> None:
        """Write the last model and the curves, and calibrate the best model as the last one was."""
        if not self.writes:
            return
        save(model, self.folder / "last")
        if held_out is not None:
            net = None if describe(model)["architecture"] else copy.deepcopy(model.classifier)
            best = load(self.folder / "best", net).to(model.mean.device)
            best.calibrate(held_out)
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


def save_state(path: Path, model: nn.Module, optimizers: Sequence[Optimizer], facts: dict[str, Any]) -> None:
    """Write weights, buffers, the optimizers' memory and `facts` (JSON values)."""
    tensors = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
    for number, optimizer in enumerate(optimizers):
        for index, memory in optimizer.state_dict()["state"].items():
            tensors |= {
                f"optimizer.{number}.{index}.{key}": value for key, value in memory.items() if value is not None
            }
    whole = {name: torch.as_tensor(tensor).detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    replace_file(path, serialize(whole, metadata={"facts": json.dumps(facts)}))


def read_facts(path: Path) -> dict[str, Any]:
    """The JSON values of a state file."""
    with _opened(path) as file:
        return json.loads((file.metadata() or {}).get("facts", "{}"))


def load_state(path: Path, model: Branched, optimizers: Sequence[Optimizer]) -> None:
    """Read a state into a model and its optimizers of the same making."""
    with _opened(path) as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
    weights = completed({name.removeprefix("model."): t for name, t in tensors.items() if name.startswith("model.")})
    check_fit(model.state_dict(), weights, str(path))
    model.load_state_dict(weights)
    for number, optimizer in enumerate(optimizers):
        _fill(optimizer, tensors, f"optimizer.{number}.")


def _fill(optimizer: Optimizer, tensors: dict[str, Tensor], prefix: str) -> None:
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        if name.startswith(prefix):
            index, key = name.removeprefix(prefix).split(".", 1)
            like = parameters[int(index)]
            # The memory takes its parameter's layout again, which the file does not keep.
            kept = torch.empty_like(like, dtype=tensor.dtype).copy_(tensor) if tensor.shape == like.shape else tensor
            state.setdefault(int(index), {})[key] = kept
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def _opened(path: Path) -> Any:
    if not path.is_file():
        raise InputError(f"nothing to resume: {path} does not exist")
    try:
        return safe_open(path, framework="pt")
    except SafetensorError as error:
        raise InputError(f"{path} is no state of a training: {error}") from None
