"""What came out, in plain words: one sentence on who is best, then what statistics and steps gave, who lost, and what
is significant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ncttt.data.corruptions import CLEAN
from ncttt.report.names import spelled
from ncttt.report.page.lines import MethodLine, Setup
from ncttt.report.page.names import short_data
from ncttt.report.page.verdicts import Verdict
from ncttt.report.page.words import listed, percent, points
from ncttt.report.shares import OWN_NORM
from ncttt.report.table import TIE

NAMED = 3  # methods that a sentence lists


@dataclass(frozen=True)
class Finding:
    """What one setup showed: a sentence to remember, and others to understand it."""

    setup: Setup
    first: str
    others: tuple[str, ...]


def finding(setup: Setup, verdicts: Iterable[Verdict] = ()) -> Finding:
    """Say what the rows of a setup show, for better or worse."""
    ranked = setup.ranked
    if not ranked:
        return Finding(setup, "No method was measured on every corruption, so none has a mean.", ())
    own = [verdict for verdict in verdicts if verdict.place == setup.place]
    best = _leader(ranked)
    others = (
        _shares(setup.lines),
        _losers(setup.lines),
        _clean(best, setup),
        *_significance(best, own),
    )
    return Finding(setup, _first(best, setup, own), tuple(text for text in others if text))


def _leader(ranked: Sequence[MethodLine]) -> MethodLine:
    """The most accurate; a tie goes to the model without adaptation, which costs nothing."""
    best = [line for line in ranked if mean_of(ranked[0]) - mean_of(line) <= TIE]
    return next((line for line in best if line.column.method == "source"), best[0])


def _first(best: MethodLine, setup: Setup, verdicts: Sequence[Verdict]) -> str:
    where, accuracy = where_of(setup), percent(mean_of(best))
    if len(setup.lines) == 1:
        return f"{where}, {best.name} has {accuracy}; it alone was measured."
    alike = _alike(best, setup, verdicts)
    if best.column.method == "source":
        near = f"; statistically indistinguishable: {_with_means(alike[:NAMED])}" if alike else ""
        return f"{where}, no method helps: without adaptation the accuracy is highest, {accuracy}{near or _own(setup)}."
    source = next((line for line in alike if _is_source_of(line, best)), None)
    if source:
        return (
            f"{where}, no method beats the model without adaptation: the best, {best.name} ({accuracy}), is "
            f"statistically indistinguishable from it ({percent(mean_of(source))})."
        )
    own = "" if any(line.column.method == "nc_ttt" for line in (best, *alike)) else _own(setup)
    gain = _gain(best, f"; {best.name} gains" if alike else ",")
    return f"{where}, {_leads(best, alike, setup, verdicts)}{gain}{own}."


def where_of(setup: Setup) -> str:
    """The images of a setup, as a sentence begins.

    >>> where_of(Setup("", {"severity": 5}, {"data": "cifar10"}, ("fog",), ("fog",), ()))
    'Under fog on CIFAR-10 at severity 5'
    """
    data, severity = short_data(setup.facets["data"]), setup.axes.get("severity")
    if setup.scored == (CLEAN,):
        return f"On clean images of {data}"
    at = f" at severity {severity}" if severity else ""
    if len(setup.scored) > 1:
        return f"Under {len(setup.scored)} corruptions of {data}{at}"
    name = spelled(setup.scored[0]) if setup.scored else "no corruption"
    return f"Under {name if name.startswith('JPEG') else name[:1].lower() + name[1:]} on {data}{at}"


def _alike(best: MethodLine, setup: Setup, verdicts: Sequence[Verdict]) -> list[MethodLine]:
    """The other methods that are as accurate, or that the predictions cannot tell from the best."""
    races = [(verdict.first, verdict.second) for verdict in verdicts if verdict.indistinguishable]
    open_races = {column for race in races if best.column in race for column in race}
    return [
        line
        for line in setup.ranked
        if line is not best and (mean_of(best) - mean_of(line) <= TIE or line.column in open_races)
    ]


def _leads(best: MethodLine, alike: Sequence[MethodLine], setup: Setup, verdicts: Sequence[Verdict]) -> str:
    accuracy, count = percent(mean_of(best)), len({line.column.label for line in setup.ranked})
    if len(alike) >= NAMED:
        others = f"{len(alike)} other lines" if any(line.repeated for line in alike) else f"{len(alike)} others"
        return f"{best.name} leads {count} methods with {accuracy}, statistically indistinguishable from {others}"
    if alike:
        each = _with_means([best, *alike])
        same = "equally accurate" if mean_of(best) - mean_of(alike[-1]) <= TIE else "statistically indistinguishable"
        return f"{each} lead {count} methods and are {same}"
    verb = "is the most accurate" if _is_tested(best, verdicts) else "has the highest accuracy"
    return f"{best.name} {verb} of {count} methods: {accuracy}"


def _with_means(lines: Sequence[MethodLine]) -> str:
    return listed([f"{line.name} ({percent(mean_of(line))})" for line in lines])


def _is_tested(best: MethodLine, verdicts: Sequence[Verdict]) -> bool:
    """Whether any interval says how far it is ahead."""
    own = [verdict.comparison.overall.difference for verdict in verdicts if verdict.first == best.column]
    return any(difference.has_interval for difference in own)


def _gain(best: MethodLine, says: str) -> str:
    if best.gain is None:
        return ""
    return f"{says} {points(best.gain.mean)} points over the model without adaptation"


def _own(setup: Setup) -> str:
    """What NC-TTT has where it does not lead."""
    own = next((line for line in setup.ranked if line.column.method == "nc_ttt"), None)
    return f"; {own.name} has {percent(mean_of(own))}" if own else ""


def _is_source_of(line: MethodLine, best: MethodLine) -> bool:
    return line.column.method == "source" and line.column.checkpoint == best.column.checkpoint


def _shares(lines: Sequence[MethodLine]) -> str:
    """What statistics gave, and what the steps of each method gave on top; one sentence for each model."""
    by_model: dict[str, list[MethodLine]] = {}
    for line in lines:
        if line.share is not None:
            by_model.setdefault(line.model, []).append(line)
    sentences = []
    for model, own in by_model.items():
        on = f" on {model}" if len(by_model) > 1 else ""
        steps = sorted(((line.share.steps, line.name) for line in own if line.share), reverse=True)
        given = listed([f"{name} {points(gain)}" for gain, name in steps])
        statistics = next(line.share.statistics for line in own if line.share)
        sentences.append(f"Batch statistics alone give {points(statistics)} points{on}; steps on top of them: {given}.")
    return " ".join(sentences)


def _losers(lines: Sequence[MethodLine]) -> str:
    lost = sorted((line.gain.mean, line.name) for line in lines if line.gain and line.gain.mean < -TIE)
    if not lost:
        return ""
    return f"Worse than no adaptation at all: {listed([f'{name} ({points(gain)})' for gain, name in lost])}."


def _clean(best: MethodLine, setup: Setup) -> str:
    same = [line for line in setup.lines if line.column.checkpoint == best.column.checkpoint]
    source = next((line.clean for line in same if line.column.method == "source"), None)
    if best.clean is None or source is None or best.column.method == "source" or len(setup.corruptions) < 2:
        return ""
    clean, before = percent(best.clean.mean), percent(source.mean)
    return f"On clean images {best.name} has {clean}, the model without adaptation {before}."


def _significance(best: MethodLine, verdicts: Sequence[Verdict]) -> Iterator[str]:
    for verdict in verdicts:
        second = verdict.second
        if (verdict.first, second.checkpoint) == (best.column, best.column.checkpoint) and second.method in OWN_NORM:
            kind = "batch statistics alone" if second.method == "ptbn" else "no adaptation"
            yield f"The difference of {best.name} to {kind}, {verdict.text}."


def mean_of(line: MethodLine) -> float:
    """The mean accuracy of a line, below all others where it has none."""
    return line.mean.mean if line.mean else float("-inf")
