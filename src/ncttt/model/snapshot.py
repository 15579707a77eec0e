"""Snapshot: the tensors that adaptation can move, as they were, and the way back to them."""

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from ncttt.base.errors import InputError


class Snapshot:
    """Clones of live tensors; a reset copies just those back, in place, and clears the optimizer's history."""

    def __init__(self, tensors: Mapping[str, Tensor], optimizer: torch.optim.Optimizer | None):
        self._live = dict(tensors)
        self._optimizer = optimizer
        self._saved = self._clones()

    @contextmanager
    def saved(self) -> Iterator[None]:
        """The saved values inside the `with` block, then the live ones again; the optimizer notices nothing."""
        live = self._clones()
        self._copy(self._saved)
        try:
            yield
        finally:
            self._copy(live)

    def reset(self) -> None:
        """Put the saved values back."""
        self._copy(self._saved)
        if self._optimizer is not None:
            self._optimizer.state.clear()
            self._optimizer.zero_grad(set_to_none=True)

    @torch.inference_mode(False)
    def state(self) -> dict[str, Any]:
        """The live values and the optimizer's history, cloned."""
        history = {} if self._optimizer is None else copy.deepcopy(self._optimizer.state_dict()["state"])
        return {"tensors": self._clones(), "optimizer": history, "kind": self._kind()}

    @torch.inference_mode(False)
    def load(self, state: Mapping[str, Any]) -> None:
        """Make the live values and the optimizer's history copies of those of a state."""
        if not {"tensors", "optimizer", "kind"} <= state.keys():
            raise InputError(f"this is no state of an adapter: it holds {sorted(state)}")
        if state["kind"] != self._kind():
            raise InputError(f"the state is one of optimizer {state['kind']}, this adapter uses {self._kind()}")
        given = {name: tuple(tensor.shape) for name, tensor in state["tensors"].items()}
        expected = {name: tuple(tensor.shape) for name, tensor in self._live.items()}
        if given != expected:
            other = sorted(dict(given.items() ^ expected.items()))[:3]
            raise InputError(f"the state moves other tensors than this adapter does, among them {', '.join(other)}")
        self._copy(state["tensors"])
        if self._optimizer is not None:
            groups = self._optimizer.state_dict()["param_groups"]
            # Copied, because an optimizer adopts the tensors it is given and would then change the caller's state.
            self._optimizer.load_state_dict({"state": copy.deepcopy(state["optimizer"]), "param_groups": groups})
            self._optimizer.zero_grad(set_to_none=True)

    def _kind(self) -> str:
        return type(self._optimizer).__name__

    def _clones(self) -> dict[str, Tensor]:
        return {name: tensor.detach().clone() for name, tensor in self._live.items()}

    def _copy(self, values: Mapping[str, Tensor]) -> None:
        if self._live:
            with torch.no_grad():
                torch._foreach_copy_(list(self._live.values()), [values[name] for name in self._live])  # type: ignore[attr-defined]
