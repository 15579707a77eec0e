"""Checks of a saved state: whether it is one of an adapter of the same model, with the same settings."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from ncttt.adapt.state import EXTRA, StreamState
from ncttt.base.errors import InputError
from ncttt.methods.base import Method

PARTS = {"settings", "source", "hidden", "optimizer", "generator", "batches"}
# Defaults that an adapter overrides, and what training alone uses.
NOT_COMPARED = ("steps", "lr", "optimizer", "norm", "auxiliary_weight")


def check_extra(state: StreamState, extra: Any, settings: Mapping[str, str], hidden: Mapping[str, Tensor]) -> None:
    """Raise an `InputError` unless this is the state of an adapter of the same model and settings."""
    if not isinstance(extra, Mapping) or extra.keys() != PARTS:
        held = sorted(map(str, extra)) if isinstance(extra, Mapping) else type(extra).__name__
        raise InputError(f"this is no state of an adapter: its part {EXTRA!r} holds {held}")
    check_settings(extra["settings"], settings)
    if extra["source"] != state.snapshot.digest():
        raise InputError("the state belongs to another checkpoint: what moves started from other values there")
    check_tensors(extra["hidden"], hidden)
    _check_history(extra["optimizer"], state.snapshot.moved_shapes())
    try:
        torch.Generator().set_state(extra["generator"])
    except (TypeError, RuntimeError) as error:
        raise InputError(f"the state's random numbers cannot be gone on with: {error}") from None
    if not isinstance(extra["batches"], int) or extra["batches"] < 0:
        raise InputError(f"a state counts batches from 0; found {extra['batches']!r}")


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


def _check_history(history: Any, shapes: list[tuple[int, ...]]) -> None:
    """Each entry of a parameter's history is a number, or a tensor of no or of the parameter's shape."""
    entries: list[tuple[Any, Any]] = list(history.items()) if isinstance(history, Mapping) else [(None, history)]
    for index, entry in entries:
        known = isinstance(index, int) and 0 <= index < len(shapes) and isinstance(entry, Mapping)
        tensors = [part for part in entry.values() if isinstance(part, Tensor)] if known else []
        if not known or any(part.ndim and tuple(part.shape) != shapes[index] for part in tensors):
            raise InputError(f"the state's optimizer remembers other parameters than this adapter's; see {index!r}")


def _kind(tensor: Any) -> str:
    return f"{tuple(tensor.shape)} {tensor.dtype}" if isinstance(tensor, Tensor) else f"a {type(tensor).__name__}"
