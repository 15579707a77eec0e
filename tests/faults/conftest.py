"""The fault table: how many bad inputs and faults each group has, how many ended clearly, how many were lost.

Tests that are marked `sound` show that what is good still passes, and are not counted.
"""

from collections import Counter
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo):
    report = yield
    if item.path.parent == HERE and item.get_closest_marker("sound") is None:
        report.fault = item.path.stem.removeprefix("test_").replace("_", " ")
    return report


def pytest_terminal_summary(terminalreporter) -> None:
    """A line for each group, counted from the reports, which come from other processes, too."""
    groups: dict[str, Counter] = {}
    for outcome in ("passed", "failed", "error"):
        for report in terminalreporter.stats.get(outcome, ()):
            if hasattr(report, "fault"):
                groups.setdefault(report.fault, Counter())["clear" if outcome == "passed" else "lost"] += 1
    if not groups:
        return
    terminalreporter.section("faults")
    total = sum(groups.values(), Counter())
    for name, counts in [*sorted(groups.items()), ("all", total)]:
        clear, lost = counts["clear"], counts["lost"]
        terminalreporter.write_line(f"{name:<20} {clear + lost:>4} tried  {clear:>4} clear  {lost:>4} lost")
