"""Which commands there are: a file each in `cli/commands`, a folder for a group, and what other packages announce.

They are listed by reading their files; only the command that is asked for is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any

from ncttt.base.declarations import Declaration, declaration, declarations
from ncttt.base.errors import InputError, nearest
from ncttt.base.registry import Registry, load_address

DESCRIPTION = "Test-time training of image classifiers."
EXAMPLE = "ncttt demo"
OTHER = "other commands"  # those of other packages that name no group


@dataclass(frozen=True)
class Command:
    """A command, or a group of commands: what is typed to get there, and what its help says of it."""

    name: str
    help: str
    examples: tuple[str, ...]
    group: str = OTHER
    load: Callable[[], Any] = lambda: None
    commands: Mapping[str, Command] = field(default_factory=dict)


@cache
def all_commands() -> Command:
    """`ncttt` itself, with every command below it."""
    announced = {name: _announced(name, address) for name, address in ANNOUNCED.announced.items()}
    return Command("ncttt", DESCRIPTION, (EXAMPLE,), commands=announced | _built_in("ncttt.cli.commands", "ncttt"))


def find(words: Sequence[str]) -> tuple[Command, list[str]]:
    """The command that the first words name, and the words after its name.

    >>> command, rest = find(["data", "get", "cifar10"])
    >>> command.name, rest
    ('ncttt data get', ['cifar10'])
    """
    command, rest = all_commands(), list(words)
    while command.commands and not (rest and rest[0] in ("-h", "--help")):
        command, rest = _below(command, rest), rest[1:]
    return command, rest


def _below(command: Command, words: list[str]) -> Command:
    see = f"(see {command.name} --help)"
    if not words:
        raise InputError(f"{command.name.removeprefix('ncttt ')} needs a command: {', '.join(command.commands)} {see}")
    if words[0].startswith("-"):
        raise InputError(f"no option {words[0]!r}{nearest(words[0], ('--help', '--version', '--debug'))} {see}")
    if words[0] not in command.commands:
        raise InputError(f"no command {words[0]!r}{nearest(words[0], command.commands)} {see}")
    return command.commands[words[0]]


def _built_in(package: str, above: str) -> dict[str, Command]:
    """The commands in a package: files with a function of their name, and folders of such."""
    commands = {}
    for declared in declarations(package):
        word = declared.name
        # The function of list.py is `list_`: `list` is taken.
        function = next((name for name in (word, f"{word}_") if name in declared.functions), None)
        if function is None:
            below = _built_in(declared.module, f"{above} {word}")
            group = _command(f"{above} {word}", declared, declared.docstring, commands=below)
            commands[word] = replace(group, examples=group.examples or next(iter(below.values())).examples)
        else:
            load = partial(load_address, f"{declared.module}:{function}")
            commands[word] = _command(f"{above} {word}", declared, declared.functions[function], load=load)
    return commands


def _announced(name: str, address: str) -> Command:
    """A command of another package; one whose file cannot be read must not spoil the list."""
    module, _, function = address.partition(":")
    load = partial(ANNOUNCED.find, name)
    try:
        declared = declaration(module)
    except Exception as error:  # whatever importing the packages around it raises
        return Command(f"ncttt {name}", f"Cannot be used: {error}", (), load=load)
    return _command(f"ncttt {name}", declared, declared.functions.get(function, ""), load=load)


def _command(name: str, declared: Declaration, text: str, **more: Any) -> Command:
    examples = declared.values.get("EXAMPLE", ())
    examples = (examples,) if isinstance(examples, str) else tuple(examples)
    return Command(name, text, examples, declared.values.get("GROUP", OTHER), **more)


def _check(name: str, thing: Any) -> None:
    if not callable(thing):
        raise InputError(f"the command {name!r} is no function; found {thing!r}")


ANNOUNCED: Registry[Callable[..., None]] = Registry("command", "ncttt.commands", dict, _check)
