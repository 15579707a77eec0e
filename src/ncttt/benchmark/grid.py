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
        data: Data set by name, or a folder of images; several make a grid on each. Of cifar10-c, cifar100-c and folders
            of such arrays the corrupted images are read as they are.
        methods: What is compared: names such as tent, or {method: tent, checkpoint: ..., settings: ...}.
        checkpoint: Model for the methods that name none; by default the model of the zoo that was trained for the
            method on this data, and for methods without a branch the one that was trained without.
        split: Part of the data.
        images: How many of it, drawn once; all by default.
        skip: Leave out so many of the draw, for images that nothing was chosen on.
        root: Where data sets lie.
        image_size: Size to which image files are brought; by default the size that the checkpoints were made for. Sets
            of arrays stay as they are.
        resize: How: square scales the central square, crop scales the shorter side to 256/224 of the size, or crop(256)
            to that, and cuts the centre out; by default as in the training of the checkpoints.
        corruptions: Names; "all" is the fifteen of the benchmark, "extra" the four others, "clean" none.
        severities: From 1 to 5; clean images have none.
        constants: "cifar" or "imagenet", by the size of the images by default; none for corrupted images that are read.
        protocols: When the method forgets: episodic (each batch), online (each corruption), continual (never).
        orders: random, given, by_class, or dirichlet(0.1) and the like; mixed, or mixed(by_class) and the like, puts
            all corruptions of a severity into one stream.
        sequences: How corruptions follow one another: once, or gradual (severities 1-2-3-4-5-4-3-2-1 of each),
            visits(3) (all of it so many times) and clean_every(4) (every fourth domain clean), joined by +. But for
            once, a cell is the whole stream, with any protocol.
        batch_sizes: Images that are adapted to at a time.
        seeds: Of the order of images and of the adaptation.
        steps: Step counts to predict after; by default the method's own alone.
        threads: Of each cell.
        device: cpu, cuda or cuda:N.
        fast: On a GPU, compute in TF32 and let cuDNN try which algorithms are fastest; results differ a little, so rows
            have keys of their own. On a processor it changes nothing.
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
    batch_sizes: list[int] = field(default_factory=lambda: [128])
    seeds: list[int] = field(default_factory=lambda: [0])
    steps: list[int] | None = None
    threads: int = 1
    device: str = "cpu"
    fast: bool = False

    @cached_property
    def entries(self) -> list[Entry]:
        """What is compared, each with its checkpoint."""
        return chosen_entries(self.methods, self.checkpoint, self.data)
