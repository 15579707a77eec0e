"""Registries: names of this package, of others and of the user's own files; what is broken spoils nothing else."""

import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from ncttt import InputError
from ncttt.base import registry
from ncttt.base.registry import Registry, load_address


def check(name: str, thing: object) -> None:
    if not isinstance(thing, int | float):
        raise InputError(f"{name!r} is no number; found {thing!r}")


@pytest.fixture
def numbers(monkeypatch, tmp_path) -> Registry:
    """Two numbers of our own, and what other packages announce: one good, one hidden by ours, three broken."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "their_numbers.py").write_text("two = 2\none = -1\nword = 'x'\nclass Some:\n    three = 3\n")
    (tmp_path / "raises.py").write_text("raise RuntimeError('I am broken')\n")
    points = {
        "two": "their_numbers:two",
        "three": "their_numbers:Some.three [extra]",
        "one": "their_numbers:one",
        "word": "their_numbers:word",
        "missing": "no_such_package:x",
        "raises": "raises:x",
    }
    announced = [EntryPoint(name, value, "ncttt.numbers") for name, value in points.items()]
    monkeypatch.setattr(registry, "entry_points", lambda group: announced if group == "ncttt.numbers" else [])
    return Registry("number", "ncttt.numbers", lambda: {"zero": lambda: 0, "one": lambda: 1}, check)


def test_names_are_known_before_anything_is_imported(numbers):
    assert list(numbers) == ["zero", "one", "two", "three", "word", "missing", "raises"]
    assert len(numbers) == 7
    assert numbers.announced["three"] == "their_numbers:Some.three"
    assert "their_numbers" not in sys.modules


def test_things_are_found_wherever_they_come_from(numbers):
    assert [numbers[name] for name in ("zero", "two", "three", "their_numbers:Some.three")] == [0, 2, 3, 3]
    assert numbers["one"] == 1  # nobody replaces what comes with this package


def test_a_thing_is_loaded_once():
    made = []
    things = Registry("thing", "ncttt.things", lambda: {"a": lambda: made.append(1) or object()})
    assert things["a"] is things.find("a")
    assert made == [1]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("twoo", "no number 'twoo'; did you mean 'two'"),
        ("word", "'word' is no number; found 'x'"),
        ("their_numbers:word", "'their_numbers:word' is no number; found 'x'"),
        ("missing", "an installed package announces the number 'missing', but cannot load 'no_such_package:x': No mod"),
        ("raises", "an installed package announces the number 'raises', but cannot load 'raises:x': I am broken"),
        ("raises:x", "cannot load 'raises:x': I am broken"),
        ("their_numbers:Some.four", "cannot load 'their_numbers:Some.four': type object 'Some' has no attribute"),
        ("their_numbers:", "cannot load 'their_numbers:': "),
        (":two", "cannot load ':two': "),
        ("..up:two", "cannot load '..up:two': "),
    ],
)
def test_what_cannot_be_had_is_told(numbers, name, message):
    with pytest.raises(InputError) as error:
        numbers.find(name)
    assert str(error.value).startswith(message)
    assert numbers.find("two") == 2  # others are as they were


def test_the_cause_is_kept_for_debugging(numbers):
    with pytest.raises(InputError) as error:
        numbers.find("raises:x")
    assert isinstance(error.value.__cause__, RuntimeError)


def test_asking_whether_a_name_is_known_raises_nothing(numbers):
    assert "two" in numbers
    assert "raises" in numbers  # it is known; loading it says what is wrong
    assert "their_numbers:two" in numbers
    assert "a table: of mine" not in numbers
    assert "raises:x" not in numbers
    assert 3 not in numbers
    assert numbers.get("four") is None


def test_an_address_is_found_in_the_current_folder_but_hides_no_library(tmp_path: Path):
    (tmp_path / "mine.py").write_text("import colorsys\nanswer = 42\n")
    (tmp_path / "colorsys.py").write_text("raise SystemExit('not that of Python')\n")
    code = (
        "import sys; sys.path = [p for p in sys.path if p]\n"  # as in a command that pip installed
        "from ncttt.base.registry import load_address\n"
        "print('colorsys' in sys.modules, load_address('mine:answer'), sys.path.count(''))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "False 42 1\n", done.stderr


def test_a_module_that_lacks_another_is_told_by_the_name_of_the_other(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "needs_more.py").write_text("import something_not_installed\n")
    with pytest.raises(InputError, match="No module named 'something_not_installed'"):
        load_address("needs_more:x")
