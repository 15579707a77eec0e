"""What came out, in plain words: who is best, what statistics and steps gave, who lost, and what is significant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ncttt.report.page.setups import MethodLine, Setup
from ncttt.report.page.verdicts import Verdict
from ncttt.report.shares import OWN_NORM
from ncttt.report.table import TIE


@dataclass(frozen=True)
class Finding:
    """What one setup showed: a sentence to remember, and others to understand it."""

    setup: Setup
    first: str
    others: tuple[str, ...]


def finding(setup: Setup, verdicts: Iterable[Verdict] = ()) -> Finding:
    """Say what the rows of a setup show, for better or worse."""
    ranked = sorted((line for line in setup.lines if line.mean), key=lambda line: -_mean(line))
    if not ranked:
        return Finding(setup, "No method was measured on every corruption, so none has a mean.", ())
    best = [line for line in ranked if _mean(ranked[0]) - _mean(line) <= TIE]
    own = [verdict for verdict in verdicts if verdict.place == setup.place]
    others = (
        _gain(best[0]),
        _shares(setup.lines),
        _losers(setup.lines),
        _clean(best[0], setup),
        *_significance(best[0], own),
    )
    return Finding(setup, _first(best, setup), tuple(text for text in others if text))


def _first(best: Sequence[MethodLine], setup: Setup) -> str:
    names, accuracy = listed([line.name for line in best]), f"{_mean(best[0]):.2f} %"
    over = f" over {len(setup.scored)} corruptions" if len(setup.scored) > 1 else ""
    if len(setup.lines) == 1:
        return f"{names} alone was measured: {accuracy}{over}."
    if all(line.column.method == "source" for line in best):
        return f"No method helps here: without adaptation the accuracy is highest, {accuracy}{over} ({names})."
    verb = "share the highest" if len(best) > 1 else "has the highest"
    return f"{names} {verb} {'mean ' if over else ''}accuracy, {accuracy}{over}."


def _gain(best: MethodLine) -> str:
    if best.column.method == "source":
        return ""
    if best.gain is None or best.mean is None:
        return f"The checkpoint of {best.name} was not measured without adaptation, so its gain is not known."
    source = best.mean.mean - best.gain.mean
    return f"That is {best.gain.mean:+.2f} points over the same checkpoint without adaptation ({source:.2f} %)."


def _shares(lines: Sequence[MethodLine]) -> str:
    """What statistics gave, and what the steps of each method gave on top; one sentence for each checkpoint."""
    by_checkpoint: dict[str, list[MethodLine]] = {}
    for line in lines:
        if line.share is not None:
            by_checkpoint.setdefault(line.share.checkpoint, []).append(line)
    sentences = []
    for checkpoint, own in by_checkpoint.items():
        on = f" on {checkpoint}" if len(by_checkpoint) > 1 else ""
        steps = sorted(((line.share.steps, line.name) for line in own if line.share), reverse=True)
        given = listed([f"{name} {gain:+.2f}" for gain, name in steps])
        statistics = next(line.share.statistics for line in own if line.share)
        sentences.append(f"Batch statistics alone give {statistics:+.2f} points{on}; steps on top of them: {given}.")
    return " ".join(sentences)


def _losers(lines: Sequence[MethodLine]) -> str:
    lost = sorted((line.gain.mean, line.name) for line in lines if line.gain and line.gain.mean < -TIE)
    if not lost:
        return ""
    return f"Worse than no adaptation at all: {listed([f'{name} ({gain:+.2f})' for gain, name in lost])}."


def _clean(best: MethodLine, setup: Setup) -> str:
    same = [line for line in setup.lines if line.column.checkpoint == best.column.checkpoint]
    source = next((line.clean for line in same if line.column.method == "source"), None)
    if best.clean is None or source is None or best.column.method == "source" or len(setup.corruptions) < 2:
        return ""
    return f"On clean images {best.name} has {best.clean.mean:.2f} %, the checkpoint as it is {source.mean:.2f} %."


def _significance(best: MethodLine, verdicts: Sequence[Verdict]) -> Iterator[str]:
    for verdict in verdicts:
        if verdict.first == best.column and verdict.second.method in OWN_NORM:
            kind = "batch statistics alone" if verdict.second.method == "ptbn" else "no adaptation"
            yield f"The difference of {best.name} to {kind}, {verdict.text}."


def _mean(line: MethodLine) -> float:
    return line.mean.mean if line.mean else float("-inf")


def listed(names: Sequence[str]) -> str:
    """Names as a sentence has them.

    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
