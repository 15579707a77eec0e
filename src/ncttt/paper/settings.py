"""How the paper's tables and figures are asked for; no torch, for the command line's help reads it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ncttt.base.errors import InputError
from ncttt.base.numbers import check_seed, check_threads
from ncttt.paper.plan import Plan


@dataclass(frozen=True, kw_only=True)
class Settings:
    """At which scale, on how many images, where and with what.

    Attributes:
        scale: small (models that ship or that two cores train) or paper (ResNet-50, up to 350 epochs; needs a GPU).
        images: Test images of each corruption; all of them by default.
        seeds: Seeds of the trainings and of the order of images; by default those of the scale.
        device: cpu, cuda or cuda:N.
        executor: Where trainings and cells run: here, processes (of this machine) or ray.
        workers: Number of processes; default: cores / threads.
        address: Address of the Ray cluster, as in "auto"; by default a local one is started.
        root: Folder of the data sets; else $NCTTT_DATA, else the user's cache folder.
        out: Folder for models, rows, tables and figures; finished parts are not repeated.
    """

    scale: Literal["small", "paper"] = "small"
    images: int | None = None
    seeds: list[int] | None = None
    device: str = "cpu"
    executor: str = "processes"
    workers: int | None = None
    address: str | None = None
    root: str | None = None
    out: str = "runs/paper"

    def __post_init__(self) -> None:
        if self.images is not None and self.images < 1:
            raise InputError(f"images must be at least 1; found {self.images}")
        if self.seeds is not None and (not self.seeds or min(self.seeds) < 0):
            raise InputError(f"seeds must be whole numbers from 0, at least one; found {self.seeds}")
        for seed in self.seeds or ():
            check_seed("seeds", seed)
        check_threads("workers", self.workers)

    @property
    def home(self) -> Path:
        """The folder of this scale."""
        return Path(self.out) / self.scale

    @property
    def running(self) -> dict[str, Any]:
        """Where trainings and cells run."""
        return {"name": self.executor, "workers": self.workers, "address": self.address}

    def seeds_of(self, plan: Plan) -> list[int]:
        """The seeds that were asked for, or those of the plan."""
        return plan.seeds if self.seeds is None else self.seeds
