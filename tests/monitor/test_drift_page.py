"""The numbers of the page on drift are those of the committed rows."""

import importlib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_table_of_the_page_is_that_of_the_rows(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    filled = importlib.import_module("drift_table").filled
    text = (ROOT / "docs" / "drift.md").read_text()
    assert "| monitor | 0." in text
    assert filled(text) == text
    assert filled(text.replace("| 0.", "| 1.")) == text
