"""What must be on disk before a plan can be carried out, and fetching it where that is a matter of minutes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ncttt.base.errors import InputError
from ncttt.data.fetching import get
from ncttt.data.sets.base import data_root
from ncttt.data.sets.registry import data_set
from ncttt.paper.plan import Plan
from ncttt.paper.trainings import Training

FETCHED_UNASKED = 1_000_000_000  # bytes; larger sets are for their user to fetch


@dataclass(frozen=True)
class Need:
    """A data set or a file of weights: whether it is here, and how to get it."""

    name: str
    here: bool
    advice: str
    fetched: bool = False


def needs_of(plan: Plan, asked: Sequence[Training], root: str | None) -> list[Need]:
    """What measuring needs, and what the trainings that are left to do need."""
    left = [training for training in asked if training.state in ("missing", "begun")]
    own = [training.folder for training in asked]
    sets = [plan.images(root), *([plan.data] if left else [])]
    starts = [start for training in left if (start := training.job.start) and Path(start).parent not in own]
    return [_set_need(name, root) for name in dict.fromkeys(sets)] + [_weights_need(s) for s in dict.fromkeys(starts)]


def provide(needs: Sequence[Need], root: str | None, tell: Callable[[str], None]) -> None:
    """Fetch what is missing and small; raise an `InputError` that says how to get the rest."""
    missing = [need for need in needs if not need.here]
    asked_for = [f"{need.name}: {need.advice}" for need in missing if not need.fetched]
    if asked_for:
        raise InputError(f"missing: {'; '.join(asked_for)}")
    for need in missing:
        get(need.name, root, say=tell)


def _set_need(name: str, root: str | None) -> Need:
    chosen, where = data_set(name), data_root(root)
    fetched = bool(chosen.downloads) and (chosen.bytes or FETCHED_UNASKED + 1) <= FETCHED_UNASKED
    return Need(name, chosen.present(where), chosen.advice(where), fetched)


def _weights_need(start: str) -> Need:
    return Need(start, Path(start).exists(), f"put torchvision's ImageNet weights for ResNet-50 at {start}")
