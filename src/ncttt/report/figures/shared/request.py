"""What figures are asked to be drawn from; no torch and no matplotlib, for command-line help reads it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ncttt import benchmark
from ncttt.base.errors import InputError
from ncttt.report.figures.shared.selection import Row, rows_where

Trial = Mapping[str, Any]
HOW = "write it by `ncttt tune --config layer-sigma --json > trials.json`"


@dataclass(frozen=True, kw_only=True)
class Request:
    """What figures are drawn from.

    Attributes:
        rows: Of a benchmark: its store, or a CSV of it.
        where: Use only rows whose columns have these values, as in --where.severity 5.
        window: Number of images of a moving mean along a stream; by default a quarter of a domain.
        trials: File with what `ncttt tune --json` printed.
        method: That of the rows (nc_ttt by default), or one in place of the model's own.
        model: Zoo name or folder; by default the zoo's model for NC-TTT on this data.
        data: Name of a data set, or a folder of images.
        root: Folder of the data sets; else $NCTTT_DATA, else the user's cache folder.
        images: Number of test images that the model predicts.
        corruption: Corruption of those images.
        severity: Severity of that corruption, from 1 to 5.
        constants: Table of the severities, cifar or imagenet; by default chosen by the size of the images.
        steps: Of the adaptation; by default 20 for tsne, and the method's own otherwise.
    """

    rows: str | None = None
    where: dict[str, Any] | None = None
    window: int | None = None
    trials: str | None = None
    method: str | None = None
    model: str | None = None
    data: str = "digits"
    root: str | None = None
    images: int = 200
    corruption: str = "contrast"
    severity: int = 5
    constants: str | None = None
    steps: int | None = None

    @cached_property
    def chosen_rows(self) -> list[Row]:
        """The rows that were asked for, read once."""
        return [] if self.rows is None else rows_where(benchmark.read_rows(self.rows), self.where or {})

    @cached_property
    def read_trials(self) -> list[Trial]:
        """The trials of the file, read once."""
        return [] if self.trials is None else read_trials(self.trials)

    @cached_property
    def exception(self) -> str | None:
        """Why the trials were compared on images that were not held out, if they were."""
        return None if self.trials is None else read_exception(self.trials)

    @property
    def method_of_rows(self) -> str:
        """The method whose rows are shown."""
        return self.method or "nc_ttt"


def read_trials(path: str | Path) -> list[Trial]:
    """The trials of a file that `ncttt tune --json` was written to."""
    content = _content(path)
    try:
        trials = content["trials" if "trials" in content else "searched"]
        return [{name: trial[name] for name in ("settings", "accuracy", "gain")} for trial in trials]
    except (KeyError, TypeError):
        raise InputError(f"{path} holds no trials; {HOW}") from None


def read_exception(path: str | Path) -> str | None:
    """What such a file says of images that were not held out."""
    exception = _content(path).get("exception")
    return None if exception is None else str(exception)


def _content(path: str | Path) -> dict[str, Any]:
    if not Path(path).is_file():
        raise InputError(f"there is no file {path}; {HOW}")
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise InputError(f"{path} holds no trials; {HOW}")
    return content
