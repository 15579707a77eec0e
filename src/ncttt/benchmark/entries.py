"""The method of a grid's entry: its settings, its checkpoints, its step counts, and what they may not be."""

from __future__ import annotations

from typing import Any

from ncttt.base.errors import InputError
from ncttt.benchmark.grid import Entry, Grid
from ncttt.methods import METHODS, Method
from ncttt.methods.settings import method_from


def checkpoints_of(entry: Entry) -> list[str]:
    """The checkpoints of an entry, however many there are."""
    checkpoints = [entry.checkpoint] if isinstance(entry.checkpoint, str) else entry.checkpoint
    if not checkpoints:
        raise InputError(f"{entry.label or entry.method} has no checkpoint")
    return checkpoints


def method_of(entry: Entry, described: dict[str, Any], checkpoint: str) -> Method:
    """The method of an entry with the settings of its checkpoint, if it was trained for it, and its own."""
    name, own = entry.method, described["method"]
    kind = METHODS.find(name)
    if kind.has_branch and METHODS.get(own["name"]) is not kind:
        raise InputError(f"{name} needs a checkpoint trained for it; {checkpoint} is for {own['name']}")
    base = own if kind.has_branch else {"name": name}
    method = method_from(base, **entry.settings)
    trained = method_from(base)
    other = [key for key in method.branch_settings if getattr(trained, key) != getattr(method, key)]
    if other:
        raise InputError(f"{checkpoint} was trained with another {', '.join(other)}; train one with these settings")
    check_stop(entry.stop, kind)
    return method


def check_stop(stop: str | float | None, kind: type[Method]) -> None:
    """Raise unless a method of this kind can stop by it."""
    if stop is None or stop == "source":
        return
    if isinstance(stop, str):
        raise InputError(f"stop must be 'source', a level of the score or nothing; found {stop!r}")
    if kind.score is Method.score:
        raise InputError(f"a level to stop at needs a method with a score, such as nc_ttt; found {kind.name}")


def steps_of(grid: Grid, entry: Entry, method: Method) -> tuple[int, ...]:
    """Step counts: the entry's own, or its setting, or the grid's, or the method's; none for what cannot learn."""
    if not method.learns:
        return (method.steps,)
    own = entry.settings.get("steps")
    if entry.steps and own not in (None, entry.steps[-1]):
        raise InputError(
            f"{entry.label or entry.method} has steps {entry.steps} and the setting steps={own}; leave one out"
        )
    if entry.steps or own is not None:
        return tuple(entry.steps or [method.steps])
    return tuple(grid.steps or [method.steps])
