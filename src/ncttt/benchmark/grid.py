"""A grid as a configuration file describes it; names only, so that reading one needs no torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ncttt.benchmark.entries import Entry, chosen_entries

BLEND = "blend(0.5)"  # of source and batch statistics, that an attribution shows beside them


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Data x corruption x severity x method x checkpoint x protocol x order x sequence x batch size x seed.

    Attributes:
        data: Data set by name, or a folder of images; several give one grid each. The corrupted images of cifar10-c,
            cifar100-c and folders of such arrays are read as they are.
        methods: Methods to compare: names such as tent, or {method: tent, checkpoint: ..., settings: ...}.
        checkpoint: Model for the methods that name none; by default the model of the zoo that was trained for the
            method on this data, and for methods without a branch the one that was trained without.
        split: Part of the data.
        images: Number of images, drawn once; by default all.
        skip: Number of drawn images to leave out, to measure on images that nothing was chosen on.
        root: Folder of the data sets; else $NCTTT_DATA, else the user's cache folder.
        image_size: Size in pixels to which image files are resized; by default the size of the checkpoints' training
            images. Sets of arrays stay as they are.
        resize: How image files are resized: square scales the central square; crop scales the shorter side to 256/224
            of the size, crop(256) to 256 pixels, and cuts out the centre; by default as in the training of the
            checkpoints.
        corruptions: Names; "all" is the fifteen of the benchmark, "extra" the four others, "clean" none.
        severities: From 1 to 5; clean images have none.
        constants: Table of severities, "cifar" or "imagenet"; by default chosen by the size of the images. Not used for
            corrupted images that are read.
        protocols: When the method forgets: episodic (each batch), online (each corruption), continual (never).
        orders: Order of the images: random, given, by_class or dirichlet(0.1); mixed, or mixed(by_class), puts all
            corruptions of a severity into one stream.
        sequences: How corruptions follow one another: once; or gradual (severities 1-2-3-4-5-4-3-2-1 of each),
            visits(3) (everything three times) and clean_every(4) (every fourth domain clean), joined by +. Every
            sequence but once makes the whole stream one cell, with any protocol.
        batch_sizes: Number of images in a batch; by default 128, or all images where there are fewer.
        seeds: Seeds of the order of images and of the adaptation.
        steps: Numbers of steps after which to predict; by default the method's own.
        threads: Number of threads of each cell.
        device: cpu, cuda or cuda:N.
        fast: On a GPU, compute in TF32 and let cuDNN try which algorithms are fastest; results differ a little, so rows
            have other keys. On a processor it changes nothing.
    """

    data: str | list[str]
    methods: Sequence[str | dict[str, Any] | Entry]
    checkpoint: str | None = None
    split: str = "test"
    images: int | None = None
    skip: int = 0
    root: str | None = None
    image_size: int | None = None
    resize: str | None = None
    corruptions: list[str] = field(default_factory=lambda: ["all"])
    severities: list[int] = field(default_factory=lambda: [5])
    constants: str | None = None
    protocols: list[str] = field(default_factory=lambda: ["episodic"])
    orders: list[str] = field(default_factory=lambda: ["random"])
    sequences: list[str] = field(default_factory=lambda: ["once"])
    batch_sizes: list[int] | None = None
    seeds: list[int] = field(default_factory=lambda: [0])
    steps: list[int] | None = None
    threads: int = 1
    device: str = "cpu"
    fast: bool = False

    @cached_property
    def entries(self) -> list[Entry]:
        """What is compared, each with its checkpoint."""
        return chosen_entries(self.methods, self.checkpoint, self.data)
