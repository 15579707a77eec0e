"""A configuration file of `ncttt train`, read as that command reads it."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentError, ArgumentParser

from ncttt.base.errors import InputError
from ncttt.cli.commands.train import train_command
from ncttt.training.job import Job


def read_job(path: str | Path) -> Job:
    """The training that the file describes; how it is to run does not matter here."""
    if not Path(path).is_file():
        raise InputError(f"there is no configuration {path}")
    parser = ArgumentParser(exit_on_error=False)
    parser.add_function_arguments(train_command)
    try:
        parsed = parser.parse_path(str(path))
        settings = (getattr(parser, "instantiate", None) or parser.instantiate_classes)(parsed)
    except (ArgumentError, TypeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is no configuration of a training: {' '.join(str(error).split())}") from None
    given: dict[str, Any] = {field.name: settings[field.name] for field in fields(Job)}
    given |= {name: given[name] or {} for name in ("network_settings", "method_settings")}
    return Job(**given)
