"""Usage: memory, processor time and open files of all processes of a service, as one process would tell them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from prometheus_client import Metric, ProcessCollector
from prometheus_client.registry import Collector

OF_ONE = ("process_start_time_seconds", "process_max_fds")  # the others are sums


class Usage(Collector):
    """Sums what Prometheus's collector tells of this process and of `others`, by their numbers."""

    def __init__(self, others: Callable[[], Sequence[int]] = tuple):
        self._own, self._others = ProcessCollector(registry=None), others

    def collect(self) -> Iterator[Metric]:
        found = {family.name: family for family in self._own.collect()}
        for number in self._others():
            for family in ProcessCollector(pid=lambda each=number: each, registry=None).collect():
                if family.name not in OF_ONE:
                    own, (sample,) = found[family.name], family.samples
                    own.samples = [each._replace(value=each.value + sample.value) for each in own.samples]
        yield from found.values()
