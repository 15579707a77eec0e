"""Every command by its name, as `data get`; `ncttt` itself is the empty one."""

from collections.abc import Iterator

from ncttt.cli.catalogue import Command, all_commands


def walk(command: Command) -> Iterator[Command]:
    yield command
    for below in command.commands.values():
        yield from walk(below)


EVERY = {command.name.removeprefix("ncttt").strip(): command for command in walk(all_commands())}
