"""The processes that a service has started, to be found, killed, and never left behind."""

import os
import signal
from contextlib import suppress
from pathlib import Path


def below(pid: int) -> dict[int, str]:
    """All processes that a process has started, directly or not, by number, with their command lines."""
    parents, names = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            names[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    found, new = {}, {pid}
    while new:
        new = {child for child, parent in parents.items() if parent in new and child not in found}
        found |= {child: names[child] for child in new}
    return found


def replicas_below(pid: int) -> list[int]:
    """The processes of the replicas of a service."""
    return sorted(number for number, name in below(pid).items() if name.startswith("ray::ServeReplica"))


def alive(pids: dict[int, str]) -> list[str]:
    """Those that are still there, but for ones that have ended and nobody has asked after."""
    found = []
    for pid, name in pids.items():
        with suppress(OSError):
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
            command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            found += [f"{pid} {name}"] if state != "Z" and command == name else []
    return found


def end(pids: dict[int, str]) -> None:
    """Kill what is left of processes, whatever happened."""
    for each in alive(pids):
        with suppress(ProcessLookupError):
            os.kill(int(each.split()[0]), signal.SIGKILL)


def model_below(pid: int) -> int:
    """The process that owns the model of a service."""
    (found,) = (number for number, name in below(pid).items() if "spawn_main" in name)
    return found


def gone(pid: int) -> bool:
    """Whether a process has ended, whether or not anybody has asked after it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
