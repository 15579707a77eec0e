"""An error that nobody foresaw is one line that says so, not a bare traceback."""

import pytest

from ncttt.cli import main


@pytest.fixture
def broken(monkeypatch):
    def fail(*args, **kwargs):
        raise RuntimeError("two\nlines \x1b[31m")

    monkeypatch.setattr("ncttt.zoo.shipped.trained_models", fail)


def test_a_bug_is_named_and_how_to_report_it(broken, capsys):
    assert main(["info"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(r"ncttt: RuntimeError: two\nlines \x1b[31m; this is a bug in ncttt")
    assert "--debug" in line


def test_debug_shows_the_trace(broken):
    with pytest.raises(RuntimeError, match="two"):
        main(["info", "--debug"])
