"""What the pages of the documentation ask a reader to run: commands and blocks of Python, in their order."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SHELLS = ("", "bash", "console", "sh")
FENCE = re.compile(r"^```(\w*)\s*$")


class Step(NamedTuple):
    """A command, as the words after `ncttt`, or a block of Python."""

    page: str
    line: int
    text: str
    words: tuple[str, ...] | None = None

    @property
    def name(self) -> str:
        """Where it stands, for a person."""
        return f"{self.page}:{self.line}"


def steps(page: Path) -> list[Step]:
    """Everything on a page that can be run, from top to bottom."""
    name = str(page.relative_to(ROOT))
    return [step for line, kind, text in blocks(page.read_text()) for step in _of_block(name, line, kind, text)]


def blocks(text: str) -> Iterator[tuple[int, str, str]]:
    """Fenced blocks with their language, and indented lines, which count as a shell's; with the number of the line."""
    kind: str | None = None
    begun, inside = 0, []
    for number, line in enumerate(re.sub(r"\\\n\s*", " ", text).splitlines(), 1):
        fence = FENCE.match(line)
        if kind is not None and line.startswith("```"):
            yield begun, kind, "\n".join(inside)
            kind = None
        elif fence:
            kind, begun, inside = fence[1], number + 1, []
        elif kind is not None:
            inside.append(line)
        elif line.startswith("    "):
            yield number, "", line.strip()


def _of_block(page: str, first: int, kind: str, text: str) -> Iterator[Step]:
    if kind == "python":
        yield Step(page, first, text)
    elif kind in SHELLS:
        for number, line in enumerate(text.splitlines(), first):
            words = command_in(line)
            if words is not None:
                yield Step(page, number, line.strip(), words)


def command_in(line: str) -> tuple[str, ...] | None:
    """The words after `ncttt` in a line of a shell, if it calls that; as a module of Python or by torchrun, too.

    >>> command_in("$ ncttt data get cifar10  # fetch")
    ('data', 'get', 'cifar10')
    >>> command_in("torchrun --nproc-per-node 2 -m ncttt train --resume")
    ('train', '--resume')
    >>> command_in("ncttt.Adapter(net)")
    """
    nested = re.search(r"\$\((ncttt [^)]*)\)", line)
    plain = re.sub(r"^\$ ", "", nested[1] if nested else line.strip())
    if not re.match(r"(\S*/)?ncttt( |$)|.* -m ncttt ", plain):
        return None
    words = shlex.split(plain, comments=True)
    ends = [number for number, word in enumerate(words) if word in (">", "|", "&&", ";")]
    words = words[: ends[0]] if ends else words
    return tuple(words[words.index("ncttt") + 1 :] if "ncttt" in words else words[1:])


def inline_commands(page: Path) -> Iterator[tuple[str, ...]]:
    """Commands that are mentioned in a sentence, between backticks."""
    for found in re.findall(r"`ncttt ([^`\n]+)`", page.read_text()):
        yield tuple(found.split())
