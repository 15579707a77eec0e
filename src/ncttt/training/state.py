"""The state of a training in one file, replaced whole: tensors as safetensors, the rest as JSON in its header."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as serialize
from torch import Tensor, nn
from torch.optim import Optimizer

from ncttt.base.errors import InputError
from ncttt.base.files import replace_file
from ncttt.model.branched import Branched
from ncttt.zoo.checkpoint import check_fit, completed


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
