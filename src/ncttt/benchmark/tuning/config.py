"""A tuning as a configuration file describes it; names only, so that reading one needs no torch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """What to try, and on which validation images.

    Attributes:
        data: Data set by name, or a folder of images.
        train: Configuration file of the training that every trial begins with; not with a checkpoint.
        trained: Settings of the training and the values to try, such as layer, recipe.auxiliary_weight or
            method_settings.sigma_out; each combination is trained once.
        tied: Settings of the training that follow from others, such as method_settings.sigma_out: 2 *
            method_settings.sigma_in.
        one_by_one: Change one setting of the training at a time, in addition to the training as it stands, instead of
            trying every combination.
        checkpoint: Trained model to tune on; not with train.
        method: Name of the method that adapts, or its address module:Class; by default the one that the model was
            trained for.
        adapted: Settings of the adaptation and the values to try, such as moves, lr, norm, steps or stop.
        random: Number of combinations to try, drawn at random; by default all.
        root: Folder of the data sets; else $NCTTT_DATA, else the user's cache folder.
        split: Part that was held out of the training images; another one needs an exception.
        exception: Why settings are compared on images that are not held out, as a figure of a paper may do; whatever
            shows the trials prints it, and no setting may be chosen by them.
        images: How many of it.
        resize: How image files are resized: square, crop or crop(R), such as crop(256); by default as in the model's
            training.
        confirm: Number of best trials to measure again, on images that nothing was chosen on.
        confirm_images: How many of those; by default as many as the trials had.
        corruptions: Corruptions among the four extra ones; the fifteen of the benchmark are for testing.
        severity: From 1 to 5.
        constants: Table of severities, "cifar" or "imagenet"; by default chosen by the size of the images.
        protocol: episodic, online or continual.
        order: Order of the images: random, by_class, dirichlet(0.1) or mixed.
        sequence: How corruptions follow one another: once; or gradual, visits(3) and clean_every(4), joined by +, which
            make one stream of them.
        batch_size: Number of images in a batch; by default 128, or all images where there are fewer.
        seed: Seed of the draw of combinations, the order of images and the adaptation.
        threads: Number of threads of each cell.
        device: cpu, cuda or cuda:N.
    """

    data: str
    train: str | None = None
    trained: dict[str, list[Any]] = field(default_factory=dict)
    tied: dict[str, str] = field(default_factory=dict)
    one_by_one: bool = False
    checkpoint: str | None = None
    method: str | None = None
    adapted: dict[str, list[Any]] = field(default_factory=dict)
    random: int | None = None
    root: str | None = None
    split: str = "val"
    exception: str | None = None
    images: int | None = None
    resize: str | None = None
    confirm: int = 0
    confirm_images: int | None = None
    corruptions: list[str] = field(default_factory=lambda: ["extra"])
    severity: int = 5
    constants: str | None = None
    protocol: str = "episodic"
    order: str = "random"
    sequence: str = "once"
    batch_size: int | None = None
    seed: int = 0
    threads: int = 1
    device: str = "cpu"
