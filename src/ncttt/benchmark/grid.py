"""A grid as a configuration file describes it; names only, so that reading one needs no torch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

BLEND = "blend(0.5)"  # of source and batch statistics, that an attribution shows beside them


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A method on a checkpoint.

    Attributes:
        method: Name of the method, or the address module:Class of your own.
        checkpoint: Zoo name or folder of the model; several make an entry each.
        settings: Of the method, in place of its own or of the checkpoint's.
        label: What tables call it; by default the method's name.
        steps: Step counts to predict after, in place of the grid's; the last is the one that counts.
        stop: "source", to leave batches that look like source images to the source model, or a level of the score, to
            end the steps by.
        protocols: In place of the grid's.
    """

    method: str
    checkpoint: str | list[str]
    settings: dict[str, Any] = field(default_factory=dict)
    label: str | None = None
    steps: list[int] | None = None
    stop: str | float | None = None
    protocols: list[str] | None = None


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Data x corruption x severity x method x checkpoint x protocol x order x batch size x seed.

    Attributes:
        data: Data set by name, or a folder of images; several make a grid on each. Of cifar10-c, cifar100-c and folders
            of such arrays the corrupted images are read as they are.
        methods: What is compared, on which checkpoints.
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
        orders: random, by_class, or dirichlet(0.1) and the like; mixed, or mixed(by_class) and the like, shuffles all
            corruptions of a severity together.
        batch_sizes: Images that are adapted to at a time.
        seeds: Of the order of images and of the adaptation.
        steps: Step counts to predict after; by default the method's own alone.
        threads: Of each cell.
        device: cpu, cuda or cuda:N.
        fast: On a GPU, compute in TF32 and let cuDNN try which algorithms are fastest; results differ a little, so rows
            have keys of their own. On a processor it changes nothing.
    """

    data: str | list[str]
    methods: list[Entry]
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
    batch_sizes: list[int] = field(default_factory=lambda: [128])
    seeds: list[int] = field(default_factory=lambda: [0])
    steps: list[int] | None = None
    threads: int = 1
    device: str = "cpu"
    fast: bool = False
