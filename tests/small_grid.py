"""A grid that takes a second: a network that has seen some digits, three methods, two corruptions."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

import ncttt
from ncttt.benchmark.grid import Entry, Grid
from ncttt.benchmark.rows import Row
from ncttt.data import batches, load

VARYING = ("images_per_second", "peak_memory_mib", "commit", "machine", "versions")  # from run to run


def make_checkpoint(folder: Path) -> str:
    torch.manual_seed(0)
    fit, held_out = load("digits", "fit").subset(range(320)), load("digits", "val")
    example = next(iter(batches(fit, 2)))[0]
    method = ncttt.NCTTT(
        moves="layer1",
        channels=8,
        hidden=64,
        steps=2,
        lr=0.01,
        copies=1,
        crop=1.0,
        mirror_mean=False,
        entropy=0,
        contrast=1,
        step_size="fixed",
    )
    model = ncttt.attach(ncttt.models.small(width=4), "layer3", method, example)
    ncttt.train(
        model,
        fit,
        epochs=6,
        batch_size=32,
        lr=0.1,
        warmup_steps=0,
        auxiliary_weight=1.0,
        held_out=held_out,
        observers=[],
    )
    ncttt.save(model, folder)
    return str(folder)


def grid(checkpoint: str, **changes: Any) -> Grid:
    entries = [
        Entry(method="source", checkpoint=checkpoint),
        Entry(method="ptbn", checkpoint=checkpoint),
        Entry(method="nc_ttt", checkpoint=checkpoint, label="NC-TTT", steps=[0, 2]),
    ]
    chosen = Grid(
        data="digits",
        methods=entries,
        images=120,
        corruptions=["gaussian_noise", "contrast"],
        constants="imagenet",
        batch_sizes=[40],
    )
    return replace(chosen, **changes)


def facts(rows: list[Row]) -> list[Row]:
    """Rows without what may differ from run to run, in an order of their own."""
    kept = [{name: value for name, value in row.items() if name not in VARYING} for row in rows]
    return sorted(kept, key=lambda row: row["key"])
