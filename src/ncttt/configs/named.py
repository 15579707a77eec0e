"""Configurations by name: `digits` of `ncttt train` is the file `train/digits.yaml` in this folder."""

from __future__ import annotations

from pathlib import Path

from ncttt.base.errors import InputError, nearest
from ncttt.base.yaml_limits import read_yaml

HOME = Path(__file__).parent


def names(command: str) -> list[str]:
    """The configurations that ship for a command.

    >>> names("train")[-1]
    'digits'
    """
    folder = HOME / command
    return sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.yaml"))


def checked(path: str | Path) -> Path:
    """The path of a configuration, once its size and its text are known to be within limits."""
    read_yaml(path)
    return Path(path)


def find(command: str, name: str | Path) -> Path:
    """The file of a configuration: that of the given path, or else the one that ships for a command under this name.

    >>> find("train", "digits").name
    'digits.yaml'
    """
    if Path(name).is_file():
        return checked(name)
    shipped = names(command)
    if str(name) not in shipped:
        raise InputError(f"there is no configuration {name}{nearest(str(name), shipped)}")
    return HOME / command / f"{name}.yaml"
