"""The folder of a training: configuration, metrics, the last and the best model, and the state to resume from."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, fields
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
from ncttt.base.optimizers import check_history
from ncttt.base.provenance import origin
from ncttt.base.schema import Rule, check_keys, is_list_of, is_number, is_whole, parsed_json, read_json, whole
from ncttt.data import Batches, LoadedBatches
from ncttt.model.branched import Branched
from ncttt.model.fit import check_fit, check_sound, must_be_finite
from ncttt.training.epoch import Epoch, draw_curves, write_metrics
from ncttt.training.processes import place
from ncttt.training.recipe import Recipe
from ncttt.zoo.checkpoint import OWN, describe, load, save
from ncttt.zoo.hub import WEIGHTS
from ncttt.zoo.stored import completed

STATE, METRICS, CONFIG, ENVIRONMENT = "state.safetensors", "metrics.csv", "config.json", "environment.json"
ADDED = {"warmup_steps": 0}  # settings of recipes that came later, and what older trainings did


def _is_epoch(value: Any) -> bool:
    held_out = value.get("held_out", {}) if isinstance(value, dict) else None
    if not isinstance(held_out, dict) or not value.keys() <= {part.name for part in fields(Epoch)}:
        return False
    numbers = [value.get(name) for name in ("cross_entropy", "auxiliary", "accuracy")]
    numbers += [part for name, part in value.items() if name != "held_out"] + list(held_out.values())
    # A metric of held-out images may have no value, so that it is NaN.
    return is_whole(value.get("number")) and all(isinstance(part, float) or is_number(part) for part in numbers)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _is_history(value: Any) -> bool:
    return is_list_of(value, _is_epoch) and [epoch["number"] for epoch in value] == list(range(1, len(value) + 1))


FACTS = {
    "history": Rule("the metrics of each epoch, from the first on", _is_history),
    "step": whole(),
    "sums": Rule("a list of three numbers", lambda value: is_list_of(value, is_number) and len(value) == 3),
    "seconds": Rule("a number from 0", lambda value: is_number(value) and value >= 0),
    "scaler": Rule("numbers by name", lambda value: isinstance(value, dict) and all(map(is_number, value.values()))),
}
CONFIG_RULES = {"recipe": Rule("settings by name", lambda value: isinstance(value, dict))}


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
        if self.folder == Path():  # "" and "."
            raise InputError(f"a training needs a folder of its own; found {str(folder)!r}")

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
        recorded = self._recorded(CONFIG, CONFIG_RULES)["recipe"]
        return recipe.but(**{name: value for name, value in ADDED.items() if name not in recorded})

    def begin(self, config: dict[str, Any], resume: bool) -> Progress:
        """Prepare the folder, or find the progress to resume from; a run is never overwritten unasked."""
        here = origin() | {"processes": place().world}
        if not self.begun:
            if (self.folder / WEIGHTS).exists():
                raise InputError(f"{self.folder} holds a model, but no training to resume; choose another folder")
            if self.writes:
                self.folder.mkdir(parents=True, exist_ok=True)
                self._write_json(CONFIG, config)
                self._write_json(ENVIRONMENT, here)
            return Progress([])
        if not resume:
            raise InputError(f"{self.folder} holds a training already; resume it, or choose another folder")
        self._check_same(config)
        progress = Progress.from_facts(read_facts(self.folder / STATE))
        if self.writes:
            before = self._recorded(ENVIRONMENT, {"resumed": Rule("a list", _is_list, optional=True)})
            self._write_json(ENVIRONMENT, before | {"resumed": [*before.get("resumed", []), here]})
        return progress

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
        began = self._recorded(CONFIG, CONFIG_RULES)
        for part, settings in json.loads(json.dumps(config)).items():
            for name, value in settings.items():
                if began.get(part, {}).get(name, value) != value:  # what was not recorded then cannot be compared
                    raise InputError(
                        f"{self.folder} was begun with {part} {name}={began[part][name]!r}; found {value!r}: "
                        "resume with the same, or choose another folder"
                    )

    def _recorded(self, name: str, rules: Mapping[str, Rule]) -> dict[str, Any]:
        recorded = read_json(self.folder / name)
        check_keys(recorded, rules, str(self.folder / name))
        return recorded

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
        facts = parsed_json((file.metadata() or {}).get("facts", "{}"), f"{path}, facts")
    check_keys(facts, FACTS, str(path))
    return facts


def load_state(path: Path, model: Branched, optimizers: Sequence[Optimizer]) -> None:
    """Read a state into a model and its optimizers of the same making, all of it or nothing."""
    with _opened(path) as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
    weights = completed({name.removeprefix("model."): t for name, t in tensors.items() if name.startswith("model.")})
    check_fit(model.state_dict(), weights, str(path))
    check_sound(weights, must_be_finite(model, OWN), str(path))
    histories = [_history(optimizer, tensors, f"optimizer.{n}.", path) for n, optimizer in enumerate(optimizers)]
    model.load_state_dict(weights)
    for optimizer, history in zip(optimizers, histories, strict=True):
        optimizer.load_state_dict({"state": history, "param_groups": optimizer.state_dict()["param_groups"]})


def _history(optimizer: Optimizer, tensors: dict[str, Tensor], prefix: str, path: Path) -> dict[int, dict[str, Tensor]]:
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        if name.startswith(prefix):
            index, _, key = name.removeprefix(prefix).partition(".")
            if not re.fullmatch("[0-9]{1,9}", index) or int(index) >= len(parameters):
                raise InputError(f"{path}, {name}: found parameter {index:.20}; expected 0 to {len(parameters) - 1}")
            like = parameters[int(index)]
            # The memory takes its parameter's layout again, which the file does not keep.
            kept = torch.empty_like(like, dtype=tensor.dtype).copy_(tensor) if tensor.shape == like.shape else tensor
            state.setdefault(int(index), {})[key] = kept
    check_history(state, optimizer, f"{path}, {prefix.rstrip('.')}")
    return state


def _opened(path: Path) -> Any:
    if not path.is_file():
        raise InputError(f"nothing to resume: {path} does not exist")
    try:
        return safe_open(path, framework="pt")
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path} is no state of a training: {error}") from None
