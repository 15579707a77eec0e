"""The state of a stream: what an adapter carries from batch to batch, when it forgets it, and how it is kept.

A saved state holds, beside the tensors of the model, what made it: the settings and a hash of the source's tensors. A
state of other settings or of another checkpoint is refused before anything is applied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from ncttt.adapt.protocols import Protocol
from ncttt.base.errors import InputError
from ncttt.base.words import kind_of
from ncttt.model.snapshot import Snapshot, named_tensors

EXTRA = "_extra_state"  # the key under which PyTorch keeps what is no tensor of a module
Self = TypeVar("Self", bound="StreamModule")


class StreamState:
    """The tensors that move, the optimizer's history, the random numbers and the count of batches of an adapter."""

    def __init__(self, snapshot: Snapshot, protocol: Protocol, seed: int):
        self.snapshot, self.protocol, self.seed = snapshot, protocol, seed
        self.batches = 0
        self._generator = torch.Generator().manual_seed(seed)

    def before_batch(self) -> dict[str, Any] | None:
        """What `go_back` needs: nothing where a batch starts at the source."""
        return self.snapshot.state() if self.protocol.remembers else None

    def go_back(self, before: dict[str, Any] | None) -> None:
        """To the state before the batch: the source's where nothing is remembered, the stream's otherwise."""
        if before is None:
            self.snapshot.reset()
        else:
            self.snapshot.load(before)

    def undo(self, before: dict[str, Any] | None, random: Tensor) -> None:
        """As if the batch had never come: go back, and draw its random numbers again when it comes again."""
        self.go_back(before)
        self._generator.set_state(random)

    @property
    def random(self) -> Tensor:
        """The state of the random numbers."""
        return self._generator.get_state()

    def next_seed(self) -> int:
        """The same for every batch where nothing is remembered, a stream of seeds otherwise."""
        if not self.protocol.remembers:
            return self.seed
        return int(torch.randint(2**62, (), generator=self._generator, device="cpu"))

    def end_batch(self, moved: bool, reset: bool = False) -> bool:
        """Count the batch, and forget if the protocol says so; tells whether the batch is remembered.

        Where nothing has moved there is nothing to forget. `reset` is the method's own wish, after which the random
        numbers go on.
        """
        self.batches += 1
        forgets = self.protocol.forgets_after(self.batches)
        if forgets and (moved or self.protocol.remembers):
            self.forget()
        elif reset:
            self.snapshot.reset()
        return not (forgets or reset)

    def forget(self) -> None:
        """Back to source tensors, an optimizer without history and the first random numbers."""
        self.snapshot.reset()
        self._generator.manual_seed(self.seed)

    def reset(self) -> None:
        """Forget, and count batches from the first again."""
        self.forget()
        self.batches = 0

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Let a stream go on inside the `with` block, and come back to where it was."""
        before, batches, generator = self.snapshot.state(), self.batches, self._generator.get_state()
        try:
            yield
        finally:
            self.snapshot.load(before)
            self.batches = batches
            self._generator.set_state(generator)

    def extra(self, settings: dict[str, str], hidden: Mapping[str, Tensor]) -> dict[str, Any]:
        """What a saved state holds beside the tensors that PyTorch saves; `hidden` are tensors that it does not."""
        return {
            "settings": settings,
            "source": self.snapshot.digest(),
            "hidden": {name: tensor.detach().clone() for name, tensor in hidden.items()},
            "optimizer": self.snapshot.history(),
            "generator": self._generator.get_state(),
            "batches": self.batches,
        }

    def load_extra(self, extra: Mapping[str, Any]) -> None:
        """Take over what `extra` gave and `check_extra` has passed."""
        live = self.snapshot.live
        with torch.no_grad():
            for name, tensor in extra["hidden"].items():
                live[name].copy_(tensor)
        self.snapshot.load_history(extra["optimizer"])
        self._generator.set_state(extra["generator"])
        self.batches = extra["batches"]


class LastBatch:
    """The last batch of an adapter, as it was given: kept without a copy, so that a call costs nothing."""

    def __init__(self, images: Tensor | None = None):
        self._images, self._version = images, None if images is None else images._version

    def __deepcopy__(self, memo: object) -> LastBatch:
        return LastBatch()  # a copy of an adapter holds on to no batch

    def __len__(self) -> int:
        return 0 if self._images is None else len(self._images)

    def images(self) -> Tensor:
        """The batch, or an `InputError` if there is none or somebody has changed it since."""
        if self._images is None:
            raise InputError("there is no batch to bake, because none came since the last reset; give bake(images)")
        if self._images._version != self._version:
            raise InputError("the last batch was changed in place since the adapter saw it; give bake(images)")
        return self._images


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

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Go on from a state; one of another model, other settings or odd values is refused before it is applied."""
        if not isinstance(state_dict, Mapping):
            raise InputError(f"this is no state of an adapter: found {kind_of(state_dict)}")
        return super().load_state_dict(state_dict, strict, assign)

    def stream_state(self) -> dict[str, Any]:
        """The part of `state_dict` in which adapters of one model and one setup differ; small where little moves."""
        state, moving = self.state_dict(), self._moving_names()
        return {name: part for name, part in state.items() if name == EXTRA or name in moving}

    def load_stream_state(self, state: Mapping[str, Any]) -> None:
        """Go on from what `stream_state` gave, checked as `load_state_dict` checks a whole state."""
        moving = self._moving_names()
        rest = {name: tensor for name, tensor in self._shown().items() if name not in moving}
        self.load_state_dict({**rest, **state})

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Let batches come inside the `with` block of which the stream remembers nothing afterwards."""
        with self._state.kept():
            yield

    def _load_from_state_dict(  # type: ignore[override]
        self, state_dict: Mapping[str, Any], prefix: str, local_metadata: Mapping[str, Any], *args: Any
    ) -> None:
        """Check everything here, because PyTorch loads the parts of a module after the module itself."""
        from ncttt.adapt.state_checks import check_extra, check_tensors  # only who loads a state needs them

        if local_metadata.get("assign_to_params_buffers", False):
            raise InputError("an adapter copies a state into its own tensors; load it without assign=True")
        odd = [name for name in state_dict if not isinstance(name, str)]
        if odd:
            raise InputError(f"this is no state of an adapter: it holds {odd[0]!r:.40}, which is no name")
        given = {name.removeprefix(prefix): part for name, part in state_dict.items() if name.startswith(prefix)}
        extra = given.pop(EXTRA, None)
        check_extra(self._state, extra, self.settings(), self._hidden())
        own = self._shown()
        check_tensors(given, self, own)
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
