"""Checks of a saved state: whether it is one of an adapter of the same model, with the same settings."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ncttt.adapt.state import EXTRA, StreamState
from ncttt.base.errors import InputError
from ncttt.base.optimizers import check_history
from ncttt.base.schema import Rule, check_keys, matching, whole
from ncttt.methods.base import Method
from ncttt.model.fit import check_fit, check_sound, must_be_finite

OWN = (
    "model.mean",
    "model.std",
    "model.source_certainty",
    "model.branch.",
    "model.windows.",
    "model.recent.",
    "model.gathered.",
    "watch.",
)
# Defaults that an adapter overrides, and what training alone uses.
NOT_COMPARED = ("steps", "lr", "optimizer", "norm", "auxiliary_weight")


def _is_text_by_name(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(part, str) for pair in value.items() for part in pair)


RULES = {
    "settings": Rule("texts by name", _is_text_by_name),
    "source": matching("[0-9a-f]{64}", "a hash of 64 hexadecimal digits"),
    "hidden": Rule("tensors by name", lambda value: isinstance(value, Mapping)),
    "optimizer": Rule("a history by parameter", lambda value: isinstance(value, Mapping)),
    "generator": Rule("random numbers that can be gone on with", lambda value: _is_random_state(value)),
    "batches": whole(),
}


def check_extra(state: StreamState, extra: Any, settings: Mapping[str, str], hidden: Mapping[str, Tensor]) -> None:
    """Raise an `InputError` unless this is the state of an adapter of the same model and settings."""
    if not isinstance(extra, Mapping) or extra.keys() != RULES.keys():
        held = sorted(map(str, extra)) if isinstance(extra, Mapping) else type(extra).__name__
        raise InputError(f"this is no state of an adapter: its part {EXTRA!r} holds {held}")
    check_keys(extra, RULES, "the state of an adapter")
    check_settings(extra["settings"], settings)
    if extra["source"] != state.snapshot.digest():
        raise InputError("the state belongs to another checkpoint: what moves started from other values there")
    check_fit(hidden, extra["hidden"], "the state", adapter=True)
    check_history(extra["optimizer"], state.snapshot.optimizer, "the state's optimizer")


def check_tensors(theirs: Any, model: nn.Module, ours: Mapping[str, Tensor]) -> None:
    """Raise an `InputError` that names the first tensor that is not this adapter's, or that cannot be used."""
    check_fit(ours, theirs, "the state", adapter=True)
    check_sound(theirs, must_be_finite(model, OWN), "the state")


def settings_of_adapter(method: Method, **adapter: Any) -> dict[str, str]:
    """Everything that makes an adapter, as text by name."""
    fields = [field.name for field in dataclasses.fields(method) if field.name not in NOT_COMPARED]
    settings = {"method": type(method).__name__, **{name: getattr(method, name) for name in fields}, **adapter}
    return {name: value if isinstance(value, str) else repr(value) for name, value in settings.items()}


def check_settings(theirs: Any, ours: Mapping[str, str]) -> None:
    """Raise an `InputError` that names the settings in which a state and an adapter differ."""
    other = sorted(name for name in theirs.keys() | ours.keys() if theirs.get(name) != ours.get(name))
    if "protocol" in other and ours["protocol"] == "episodic":
        raise InputError("an episodic adapter forgets after each batch; load a state into an online one")
    if "method" in other:
        other = ["method"]  # the rest follows from it
    if other:
        there, here = (", ".join(f"{name}={part.get(name, '(none)')}" for name in other[:4]) for part in (theirs, ours))
        raise InputError(f"the state was made with {there}; this adapter has {here}; make one with the same arguments")


def _is_random_state(value: Any) -> bool:
    try:
        torch.Generator().set_state(value)
    except (TypeError, RuntimeError):
        return False
    return True
