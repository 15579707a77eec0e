"""Feedback: labels that come after the predictions, and how often both models were right."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ncttt.base.errors import InputError, nearest


class Predicted(NamedTuple):
    """A prediction that waits for its label: the stream, and the class by each model."""

    stream: str
    adapted: int
    source: int


@dataclass
class Tally:
    """Labels of a stream, and how many of them each model had predicted."""

    labels: int = 0
    adapted: int = 0
    source: int = 0


class Feedback:
    """Remembers the last predictions, no more than so many, until their labels come."""

    def __init__(self, classes: Sequence[str], most: int):
        self._index = {name: index for index, name in enumerate(classes)}
        self._most = most
        self._waiting: OrderedDict[str, Predicted] = OrderedDict()
        self._tallies: OrderedDict[str, Tally] = OrderedDict()

    def remember(self, stream: str, adapted: Iterable[int], source: Iterable[int]) -> list[str]:
        """The ids of predictions of one request, which wait for their labels from now on."""
        word, ids = secrets.token_hex(6), []
        for number, pair in enumerate(zip(adapted, source, strict=True)):
            ids.append(f"{word}-{number}")
            self._waiting[ids[-1]] = Predicted(stream, *pair)
        while len(self._waiting) > self._most:
            self._waiting.popitem(last=False)
        return ids

    def index(self, label: str) -> int:
        """The number of a class, or an `InputError`."""
        if label not in self._index:
            raise InputError(f"no class {label!r:.80}{nearest(label, self._index)}")
        return self._index[label]

    def score(self, id_: str, label: int) -> tuple[str, bool, bool] | None:
        """The stream and whether each model was right, once for each prediction; None for one that is not known."""
        found = self._waiting.pop(id_, None)
        if found is None:
            return None
        tally = self._tallies.setdefault(found.stream, Tally())
        self._tallies.move_to_end(found.stream)
        while len(self._tallies) > self._most:
            self._tallies.popitem(last=False)
        right = found.adapted == label, found.source == label
        tally.labels, tally.adapted, tally.source = tally.labels + 1, tally.adapted + right[0], tally.source + right[1]
        return found.stream, *right

    def tally(self, stream: str) -> Tally:
        """What labels have told of a stream so far."""
        return self._tallies.get(stream, Tally())
