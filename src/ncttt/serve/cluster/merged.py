"""Metrics of several processes on one page: each series gets the name of its replica as a label."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client import Metric, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector


class _Families(Collector):
    def __init__(self) -> None:
        self.by_name: dict[str, Metric] = {}

    def collect(self) -> Iterator[Metric]:
        yield from self.by_name.values()


def merged(texts: Mapping[str, bytes]) -> bytes:
    """The metrics of replicas by their names, as one page.

    >>> page = b"# HELP n_total How many.\\n# TYPE n_total counter\\nn_total 1.0\\n"
    >>> print(merged({"a": page, "b": page}).decode())
    # HELP n_total How many.
    # TYPE n_total counter
    n_total{replica="a"} 1.0
    n_total{replica="b"} 1.0
    <BLANKLINE>
    """
    families = _Families()
    for replica, text in texts.items():
        for found in text_string_to_metric_families(text.decode()):
            family = families.by_name.setdefault(found.name, Metric(found.name, found.documentation, found.type))
            family.samples += [each._replace(labels={**each.labels, "replica": replica}) for each in found.samples]
    return generate_latest(families)
