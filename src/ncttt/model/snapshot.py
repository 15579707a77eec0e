"""Snapshot: the tensors that adaptation can move, as they were, and the way back to them."""

import copy
import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn


class Snapshot:
    """Clones of live tensors; a reset copies just those back, in place, and clears the optimizer's history."""

    def __init__(self, tensors: Mapping[str, Tensor], optimizer: torch.optim.Optimizer | None):
        self._live = dict(tensors)
        self._optimizer = optimizer
        self._saved = self._clones()
        self._digest: str | None = None

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
        return {"tensors": self._clones(), "optimizer": self.history()}

    @torch.inference_mode(False)
    def load(self, state: Mapping[str, Any]) -> None:
        """Make the live values and the optimizer's history copies of those of a state."""
        self._copy(state["tensors"])
        self.load_history(state["optimizer"])

    def load_history(self, history: Mapping[int, Any]) -> None:
        """Make the optimizer's history a copy of one that `state` gave."""
        if self._optimizer is not None:
            groups = self._optimizer.state_dict()["param_groups"]
            # Copied, because an optimizer adopts the tensors it is given and would then change the caller's state.
            self._optimizer.load_state_dict({"state": copy.deepcopy(history), "param_groups": groups})
            self._optimizer.zero_grad(set_to_none=True)

    @property
    def source(self) -> Mapping[str, Tensor]:
        """The saved values, to be read and not changed; they follow the model to another device."""
        return self._saved

    @property
    def live(self) -> dict[str, Tensor]:
        """The tensors that can move, as they are."""
        return dict(self._live)

    def history(self) -> dict[int, Any]:
        """The optimizer's history, cloned."""
        return {} if self._optimizer is None else copy.deepcopy(self._optimizer.state_dict()["state"])

    @property
    def optimizer(self) -> torch.optim.Optimizer | None:
        """The optimizer over what moves by gradients."""
        return self._optimizer

    def follow(self, live: Mapping[str, Tensor], convert: Callable[[Tensor], Tensor]) -> None:
        """Go on with tensors of another device or type, where `convert` has put the live ones."""
        self._live = dict(live)
        self._saved.update({name: convert(tensor) for name, tensor in self._saved.items()})  # it has other readers
        self._digest = None
        self.load_history(self.history())  # an optimizer that loads puts its tensors beside its parameters

    def digest(self) -> str:
        """A hash of the saved values: that of the source."""
        if self._digest is None:
            self._digest = self._computed_digest()
        return self._digest

    def _computed_digest(self) -> str:
        digest = hashlib.sha256()
        for name, tensor in sorted(self._saved.items()):
            digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
            digest.update(tensor.cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
        return digest.hexdigest()

    def _clones(self) -> dict[str, Tensor]:
        return {name: tensor.detach().clone() for name, tensor in self._live.items()}

    def _copy(self, values: Mapping[str, Tensor]) -> None:
        if self._live:
            with torch.no_grad():
                torch._foreach_copy_(list(self._live.values()), [values[name] for name in self._live])  # type: ignore[attr-defined]


def named_tensors(module: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers of a module by name, those included that its state leaves out."""
    return dict(chain(module.named_parameters(remove_duplicate=False), module.named_buffers(remove_duplicate=False)))
