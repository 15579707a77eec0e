"""What makes an adapter a good `nn.Module`: modes, devices, and a state that is checked before it is loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from ncttt.adapt.moving import named_tensors
from ncttt.adapt.state import EXTRA, StreamState, check_tensors
from ncttt.base.errors import InputError

Self = TypeVar("Self", bound="StreamModule")


class StreamModule(nn.Module):
    """A module whose parts move with a stream, as its `StreamState` says; a subclass tells its settings."""

    _state: StreamState

    def settings(self) -> dict[str, str]:
        """Everything that a state must agree in, as text by name."""
        raise NotImplementedError

    def train(self: Self, mode: bool = True) -> Self:
        """Set `training`, which nothing here looks at: the model inside stays in evaluation mode, and is adapted."""
        self.training = mode
        return self

    @torch.inference_mode(False)
    def state_dict(self, *, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> dict[str, Any]:  # type: ignore[override]
        """The whole state: `torch.save` it, `torch.load(..., weights_only=True)` it back.

        Beside the tensors of the model it holds the optimizer's history, the random numbers, the count of batches, and
        the settings and the source that it belongs to. Batches that follow do not change it.
        """
        state = super().state_dict(destination=destination, prefix=prefix, keep_vars=keep_vars)
        for name in [] if keep_vars else self._moving_names():
            if prefix + name in state:
                state[prefix + name] = state[prefix + name].clone()
        return state

    @torch.inference_mode(False)
    def get_extra_state(self) -> dict[str, Any]:
        """What a state holds beside the tensors of the model."""
        return self._state.extra(self.settings(), self._hidden())

    @torch.inference_mode(False)
    def set_extra_state(self, state: Mapping[str, Any]) -> None:
        """Take over what `get_extra_state` gave; part of `load_state_dict`, which checks it before."""
        self._state.load_extra(state)

    def _load_from_state_dict(
        self, state_dict: Mapping[str, Any], prefix: str, local_metadata: Mapping[str, Any], *args: Any
    ) -> None:
        """Check everything here, because PyTorch loads the parts of a module after the module itself."""
        if local_metadata.get("assign_to_params_buffers", False):
            raise InputError("an adapter copies a state into its own tensors; load it without assign=True")
        given = {name.removeprefix(prefix): part for name, part in state_dict.items() if name.startswith(prefix)}
        extra = given.pop(EXTRA, None)
        self._state.check_extra(extra, self.settings(), self._hidden())
        own = self._shown()
        check_tensors(given, own)
        moving = set(self._moving_names())
        for name, tensor in own.items():
            if name not in moving and not torch.equal(tensor, given[name].to(tensor.device)):
                raise InputError(f"the state belongs to another checkpoint: {name} has other values there")
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *args)

    def _apply(self: Self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Let the optimizer, the source's values and the references to what moves follow the model."""
        names = self._moving_names()
        super()._apply(fn, recurse)
        tensors = named_tensors(self)
        self._state.snapshot.follow({moving: tensors[name] for name, moving in names.items()}, fn)
        return self

    def _moving_names(self) -> dict[str, str]:
        """The names in this module of the tensors that move, each with its name in the snapshot."""
        moving = {id(tensor): name for name, tensor in self._state.snapshot.live.items()}
        return {name: moving[id(tensor)] for name, tensor in named_tensors(self).items() if id(tensor) in moving}

    def _hidden(self) -> dict[str, Tensor]:
        """What moves, by its name in the snapshot, and is no part of a module's state, as a queue of past images."""
        live, shown = self._state.snapshot.live, self._shown()
        return {moving: live[moving] for name, moving in self._moving_names().items() if name not in shown}

    def _shown(self) -> dict[str, Tensor]:
        """The tensors of the model that PyTorch makes a state of."""
        shown: dict[str, Tensor] = {}
        for name, part in self.named_children():
            shown |= part.state_dict(prefix=f"{name}.", keep_vars=True)
        return shown
