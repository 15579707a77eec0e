"""Lists on the command line: `a,b`, `[a, b]`, several words, or the option once more, all alike."""

from __future__ import annotations

import json
import re
from argparse import Action
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin

from ncttt.cli.actions import LISTS, options_of, positionals_of, spelling

OPENING, CLOSING = "([{", ")]}"


def items_of(words: Sequence[str]) -> list[str]:
    """What a list holds, however it is written; a word that names a file or folder is one item, commas or not.

    >>> items_of(["fog,contrast"]), items_of(["[fog, contrast]"]), items_of(["fog", "contrast"])
    (['fog', 'contrast'], ['fog', 'contrast'], ['fog', 'contrast'])
    >>> items_of(["mixed(dirichlet(0.1))", "{steps: [0, 1]}"])
    ['mixed(dirichlet(0.1))', '{steps: [0, 1]}']
    """
    if any("," in word and Path(word).exists() for word in words):
        return [item for word in words for item in ([word] if Path(word).exists() else items_of([word]))]
    items = []
    for part in filter(None, _split(",".join(words))):
        items += items_of([part[1:-1]]) if part.startswith("[") and part.endswith("]") else [_unquoted(part)]
    return items


def gathered(words: Sequence[str], parser: Any) -> list[str]:
    """The words of a command, the values of each option that takes a list gathered into one, behind the others."""
    options = {name: action for action in options_of(parser) if takes_list(action) for name in action.option_strings}
    tables = [f"{spelling(action)}." for action in options_of(parser) if _holds_lists(action)]
    several = not positionals_of(parser)  # else a word may be an argument of the command's own
    rest, values = [], {}
    queue = list(words)
    while queue:
        word = queue.pop(0)
        name, equals, value = word.partition("=")
        if name in options or name.startswith(tuple(tables)):
            action = options.get(name)
            given = values.setdefault(spelling(action) if action else name, [])
            given += [value] if equals else _following(queue, several or (action is not None and action.nargs == "+"))
        else:
            rest.append(word)
    return rest + [word for name, given in values.items() for word in _written(name, options.get(name), given)]


def takes_list(action: Action) -> bool:
    """Whether an option takes several values."""
    return action.nargs == "+" or _item_type(action) is not None


def _following(queue: list[str], several: bool) -> list[str]:
    """Take the values that follow an option: one, and what can only be more of them."""
    taken: list[str] = []
    while queue and not re.match("--?[A-Za-z]", queue[0]) and (several or not taken or _goes_on(taken[-1], queue[0])):
        taken.append(queue.pop(0))
    return taken


def _goes_on(last: str, word: str) -> bool:
    """Whether a word goes on with a list: a number after a number, or the rest of what a shell has cut at a space."""
    numbers = all(re.fullmatch(r"[\d.,e+-]+", part) for part in (last, word))
    return numbers or last.endswith(",") or word.startswith(",")


def _written(name: str, action: Action | None, given: list[str]) -> list[str]:
    """The option as jsonargparse reads it."""
    items = items_of(given)
    if not given:
        return [name]  # which argparse complains of
    if action is not None and action.nargs == "+":
        return [name, *items]
    kind = Any if action is None else _item_type(action)
    if len(items) == 1 and str in _alternatives(getattr(action, "_typehint", None)):
        return [f"{name}={items[0]}"]  # an option that takes one or several
    return [f"{name}=[{', '.join(text for item in items for text in _yaml(item, kind))}]"]


def _yaml(item: str, kind: Any) -> Iterator[str]:
    """An item in a YAML list; `1-5` among whole numbers is each of them."""
    ends = re.fullmatch(r"(\d{1,4})-(\d{1,4})", item)
    if kind is int and ends and int(ends[1]) <= int(ends[2]):
        yield from map(str, range(int(ends[1]), int(ends[2]) + 1))
    else:
        yield json.dumps(item) if kind is str else item


def _item_type(action: Action) -> Any:
    """The type of the items of an option that takes a list, or None."""
    for hint in _alternatives(getattr(action, "_typehint", None)):
        if get_origin(hint) in LISTS:
            return get_args(hint)[0]
    return None


def _holds_lists(action: Action) -> bool:
    """Whether an option is a table of lists by name, which `--option.name` fills one by one."""
    for hint in _alternatives(getattr(action, "_typehint", None)):
        if get_origin(hint) in (dict, Mapping) and get_origin(get_args(hint)[1]) in LISTS:
            return True
    return False


def _alternatives(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _split(text: str) -> Iterator[str]:
    """The parts between commas that stand in no brackets and no quotes."""
    depth, quote, part = 0, "", ""
    for letter in text:
        if quote or (letter in "\"'" and not part.strip()):
            quote = "" if letter == quote else quote or letter
        else:
            depth += (letter in OPENING) - (letter in CLOSING)
        if letter == "," and not depth and not quote:
            yield part.strip()
            part = ""
        else:
            part += letter
    yield part.strip()


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text
