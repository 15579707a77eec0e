"""The state of a stream: what an adapter carries from batch to batch, when it forgets it, and how it is kept.

A saved state holds, beside the tensors of the model, what made it: the settings and a hash of the source's tensors. A
state of other settings or of another checkpoint is refused before anything is applied.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from ncttt.adapt.protocols import Protocol
from ncttt.base.errors import InputError
from ncttt.methods.base import Method
from ncttt.model.snapshot import Snapshot

EXTRA = "_extra_state"  # the key under which PyTorch keeps what is no tensor of a module
PARTS = {"settings", "source", "hidden", "optimizer", "generator", "batches"}
# Defaults that an adapter overrides, and what training alone uses.
NOT_COMPARED = ("steps", "lr", "optimizer", "norm", "auxiliary_weight")


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

    def next_seed(self) -> int:
        """The same for every batch where nothing is remembered, a stream of seeds otherwise."""
        if not self.protocol.remembers:
            return self.seed
        return int(torch.randint(2**62, (), generator=self._generator, device="cpu"))

    def end_batch(self, moved: bool) -> bool:
        """Count the batch, and forget if the protocol says so; tells whether the batch is remembered.

        Where nothing has moved there is nothing to forget.
        """
        self.batches += 1
        forgets = self.protocol.forgets_after(self.batches)
        if forgets and (moved or self.protocol.remembers):
            self.forget()
        return not forgets

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

    def check_extra(self, extra: Any, settings: Mapping[str, str], hidden: Mapping[str, Tensor]) -> None:
        """Raise an `InputError` unless this is the state of an adapter of the same model and settings."""
        if not isinstance(extra, Mapping) or extra.keys() != PARTS:
            held = sorted(map(str, extra)) if isinstance(extra, Mapping) else type(extra).__name__
            raise InputError(f"this is no state of an adapter: its part {EXTRA!r} holds {held}")
        check_settings(extra["settings"], settings)
        if extra["source"] != self.snapshot.digest():
            raise InputError("the state belongs to another checkpoint: what moves started from other values there")
        check_tensors(extra["hidden"], hidden)
        self._check_history(extra["optimizer"])
        try:
            torch.Generator().set_state(extra["generator"])
        except (TypeError, RuntimeError) as error:
            raise InputError(f"the state's random numbers cannot be gone on with: {error}") from None
        if not isinstance(extra["batches"], int) or extra["batches"] < 0:
            raise InputError(f"a state counts batches from 0; found {extra['batches']!r}")

    def _check_history(self, history: Any) -> None:
        """Each entry of a parameter's history is a number, or a tensor of no or of the parameter's shape."""
        shapes = self.snapshot.moved_shapes()
        entries = history.items() if isinstance(history, Mapping) else [(None, history)]
        for index, entry in entries:
            known = isinstance(index, int) and 0 <= index < len(shapes) and isinstance(entry, Mapping)
            tensors = [part for part in entry.values() if isinstance(part, Tensor)] if known else []
            if not known or any(part.ndim and tuple(part.shape) != shapes[index] for part in tensors):
                raise InputError(f"the state's optimizer remembers other parameters than this adapter's; see {index!r}")


def settings_of_adapter(method: Method, **adapter: Any) -> dict[str, str]:
    """Everything that makes an adapter, as text by name."""
    fields = [field.name for field in dataclasses.fields(method) if field.name not in NOT_COMPARED]
    settings = {"method": type(method).__name__, **{name: getattr(method, name) for name in fields}, **adapter}
    return {name: value if isinstance(value, str) else repr(value) for name, value in settings.items()}


def check_settings(theirs: Any, ours: Mapping[str, str]) -> None:
    """Raise an `InputError` that names the settings in which a state and an adapter differ."""
    theirs = theirs if isinstance(theirs, Mapping) else {}
    other = sorted(name for name in theirs.keys() | ours.keys() if theirs.get(name) != ours.get(name))
    if "protocol" in other and ours["protocol"] == "episodic":
        raise InputError("an episodic adapter forgets after each batch; load a state into an online one")
    if "method" in other:
        other = ["method"]  # the rest follows from it
    if other:
        there, here = (", ".join(f"{name}={part.get(name, '(none)')}" for name in other[:4]) for part in (theirs, ours))
        raise InputError(f"the state was made with {there}; this adapter has {here}; make one with the same arguments")


def check_tensors(theirs: Any, ours: Mapping[str, Tensor]) -> None:
    """Raise an `InputError` that names the first tensors that differ in name, shape or type."""
    theirs = theirs if isinstance(theirs, Mapping) else {}
    kinds = [{name: _kind(tensor) for name, tensor in part.items()} for part in (theirs, ours)]
    if kinds[0] != kinds[1]:
        name = sorted(dict(kinds[0].items() ^ kinds[1].items()))[0]
        there, here = (part.get(name, "missing") for part in kinds)
        raise InputError(f"the state is of another model: {name} is {there} there, {here} in this adapter")


def _kind(tensor: Any) -> str:
    return f"{tuple(tensor.shape)} {tensor.dtype}" if isinstance(tensor, Tensor) else f"a {type(tensor).__name__}"
