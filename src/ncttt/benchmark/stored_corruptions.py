"""Scenarios of sets whose corrupted images lie ready as arrays: CIFAR-10-C, CIFAR-100-C, and folders like them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ncttt.base.errors import InputError
from ncttt.benchmark.draws import ImageDraw
from ncttt.benchmark.grid import Grid
from ncttt.benchmark.rows import MADE, PUBLISHED
from ncttt.benchmark.scenarios import CLEAN, Scenario
from ncttt.data import data_root, data_set
from ncttt.data.files.arrays import making
from ncttt.data.loading import stores_corruptions


def lies_ready(draw: ImageDraw) -> bool:
    """Whether the set of a draw holds corrupted images, so that nothing is to be corrupted."""
    return stores_corruptions(draw.folder or draw.data)


def stored_scenarios(grid: Grid, draw: ImageDraw, corruptions: Sequence[str]) -> list[list[Scenario]]:
    """One list of scenarios for each severity; every block is read here, so that what is wrong is told at once."""
    if CLEAN in corruptions:
        raise InputError(f"{draw.data} holds corrupted images alone; leave out 'clean', or measure it on the clean set")
    if draw.folder and draw.split != "test":
        raise InputError(f"{draw.data} holds arrays, which have the split 'test' alone; found {draw.split!r}")
    constants = _constants(draw)
    if grid.constants not in (None, constants):
        raise InputError(f"{draw.data} is read as it is ({constants}); leave out constants, found {grid.constants!r}")
    blocks = [[replace(draw, corruption=name, severity=level) for name in corruptions] for level in grid.severities]
    shape = blocks[0][0].read().images.shape
    return [[_scenario(block, shape, constants) for block in of_level] for of_level in blocks]


def _scenario(block: ImageDraw, shape: tuple[int, ...], constants: str) -> Scenario:
    """The scenario of a block, whose images must be of one size with the others': a stream may visit them all."""
    drawn, corruption, severity = block.read(), block.corruption or "", block.severity or 0
    if drawn.images.shape != shape:
        raise InputError(f"{block.data}: {corruption} has images {drawn.images.shape}, the first corruption {shape}")
    return Scenario(block, drawn.digest, corruption, severity, constants)


def _constants(draw: ImageDraw) -> str:
    """What rows say in place of a table of constants."""
    folder = Path(draw.folder) if draw.folder else data_set(draw.data).where(data_root(draw.root))
    told = making(folder)
    return f"{MADE}({told.get('constants')})" if told else PUBLISHED
