"""A whole training by names: data, network, layer, method and recipe; what a configuration file holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentError, ArgumentParser

from ncttt.base.errors import InputError
from ncttt.configs import find
from ncttt.data.files.resizing import SQUARE, check_image_size, shorter_side
from ncttt.training.recipe import Recipe

# What a configuration of `ncttt train` may say besides: where and how it runs.
RUNNING = ("out", "resume", "device", "threads", "tensorboard", "json")


@dataclass(frozen=True, kw_only=True)
class Job:
    """What to train on what.

    Attributes:
        data: Data set by name, or a folder of images with a subfolder for each class.
        root: Folder of the data sets; else $NCTTT_DATA, else the user's cache folder.
        split: Split to learn from.
        held_out: Part of the training images that is evaluated after every epoch and calibrates the method.
        test: Split that scores the finished model; it is used for nothing else.
        image_size: Size in pixels to which photographs are resized.
        resize: How photographs are resized: square scales the central square; crop scales the shorter side to 256/224
            of the size, crop(256) to 256 pixels, and cuts out the centre. The model records it for adapt and bench.
        train_size: Size of the training images, if the augmentation cuts windows out of them.
        mean: Mean of each input channel.
        std: Standard deviation of each input channel.
        network: Name of the network; one of another library as in timm:resnet18, torchvision:resnet18 or hf:vit, for
            which the setting pretrained takes the weights of the library.
        network_settings: Settings of the network, such as a width.
        start: Zoo name, checkpoint folder or file of weights to start from.
        whiten: Initialise the first convolution with filters that whiten the training images; only for trainings from
            scratch.
        layer: Layer or layers that the branch reads; auto takes the last stage.
        method: Name of the method.
        method_settings: Settings of the method.
        recipe: How to train.
    """

    data: str
    root: str | None = None
    split: str = "fit"
    held_out: str | None = "val"
    test: str | None = "test"
    image_size: int = 224
    resize: str = SQUARE
    train_size: int | None = None
    mean: list[float] | None = None
    std: list[float] | None = None
    network: str = "small"
    network_settings: dict[str, Any] = None  # type: ignore[assignment] - none, as files may say, are no settings
    start: str | None = None
    whiten: bool = False
    layer: str | list[str] = "layer4"
    method: str = "nc_ttt"
    method_settings: dict[str, Any] = None  # type: ignore[assignment]
    recipe: Recipe = field(default_factory=Recipe)

    def __post_init__(self) -> None:
        for name in ("network_settings", "method_settings"):
            object.__setattr__(self, name, getattr(self, name) or {})
        check_image_size(self.image_size)
        shorter_side(self.resize, self.image_size)
        if self.whiten and self.start is not None:
            raise InputError(f"whiten is for a network that begins with random weights, not with start={self.start!r}")


def read_job(path: str | Path) -> Job:
    """The training that a configuration of `ncttt train` describes, whatever it says of where and how to run it.

    It is given by the path of a file, or by the name of one that ships.

    jsonargparse reads it, as the command does, so that both take the same files: 1e-3 is a number, for example, which
    plain YAML takes for a text.
    """
    return _parsed(lambda parser: parser.parse_path(str(find("train", path))), str(path))


def job_from(settings: Mapping[str, Any], name: str) -> Job:
    """The training that settings describe, checked as those of a file are; errors call it by its name."""
    return _parsed(lambda parser: parser.parse_object(dict(settings)), name)


def _parsed(parse: Callable[[ArgumentParser], Any], name: str) -> Job:
    parser = ArgumentParser(exit_on_error=False)
    parser.add_class_arguments(Job, as_group=False)
    for option in RUNNING:
        parser.add_argument(f"--{option}", type=Any)
    try:
        settings = parser.instantiate(parse(parser))
        return Job(**{field.name: settings[field.name] for field in fields(Job)})
    except (ArgumentError, TypeError, UnicodeDecodeError) as error:
        raise InputError(f"{name} is no configuration of a training: {' '.join(str(error).split())}") from None
