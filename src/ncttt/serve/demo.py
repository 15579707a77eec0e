"""The demonstration of a service: a shipped model of digits, a playground, and a folder of states that is removed."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from ncttt.base.errors import InputError
from ncttt.serve.settings import Settings

MODEL = "digits-small-ncttt"
ONLINE = {"steps": 2, "lr": 1e-3}  # as docs/adapt.md recommends for streams


@contextmanager
def chosen_settings(
    *, demo: bool, model: str | None = None, state: str | None = None, cluster: str | None = None, **settings: Any
) -> Iterator[Settings]:
    """The settings of a service; with `demo` whatever was not asked for is that of the demonstration.

    `cluster` is the address of a Ray cluster of several machines, if that serves.

    >>> with chosen_settings(demo=True, steps=4) as settings:
    ...     settings.model, settings.steps, settings.lr, settings.playground
    ('digits-small-ncttt', 4, 0.001, True)
    """
    if model is None and not demo:
        raise InputError("--model says what to serve: a zoo name or a folder; or --demo shows digits-small-ncttt")
    with ExitStack() as stack:
        if demo:
            settings |= {name: value for name, value in ONLINE.items() if settings.get(name) is None}
            if settings.get("playground") is None:
                settings["playground"] = True
            if state is None and cluster:
                raise InputError(
                    f"--demo on the cluster at {cluster} needs --state, a folder that all of its machines see"
                )
            state = state or stack.enter_context(tempfile.TemporaryDirectory(prefix="ncttt-demo-")) + "/states"
        given = {} if state is None else {"state": state}
        yield Settings(model=model or MODEL, **given, **settings)
