"""Snapshot: the tensors that adaptation can move, as they were, and the way back to them."""

import copy
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from ncttt.errors import InputError


class Snapshot:
    """Clones of live tensors; a reset copies just those back, in place, and clears the optimizer's history."""

    def __init__(self, tensors: Mapping[str, Tensor], optimizer: torch.optim.Optimizer | None):
        self._live = {name: tensor.detach() for name, tensor in tensors.items()}
        self._saved = self._clones()
        self._optimizer = optimizer

    def reset(self) -> None:
        """Put the saved values back."""
        self._copy(self._saved)
        if self._optimizer is not None:
            self._optimizer.state.clear()

    def state(self) -> dict[str, Any]:
        """The live values and the optimizer's history, cloned."""
        history = {} if self._optimizer is None else copy.deepcopy(self._optimizer.state_dict()["state"])
        return {"tensors": self._clones(), "optimizer": history}

    def load(self, state: Mapping[str, Any]) -> None:
        """Make the live values and the optimizer's history those of a state."""
        found = {name: tuple(tensor.shape) for name, tensor in state["tensors"].items()}
        expected = {name: tuple(tensor.shape) for name, tensor in self._live.items()}
        if found != expected:
            other = sorted(dict(found.items() ^ expected.items()))[:3]
            raise InputError(f"the state moves other tensors than this adapter does, among them {', '.join(other)}")
        self._copy(state["tensors"])
        if self._optimizer is not None:
            groups = self._optimizer.state_dict()["param_groups"]
            self._optimizer.load_state_dict({"state": state["optimizer"], "param_groups": groups})

    def _clones(self) -> dict[str, Tensor]:
        return {name: tensor.clone() for name, tensor in self._live.items()}

    def _copy(self, values: Mapping[str, Tensor]) -> None:
        if self._live:
            with torch.no_grad():
                torch._foreach_copy_(list(self._live.values()), [values[name] for name in self._live])  # type: ignore[attr-defined]
