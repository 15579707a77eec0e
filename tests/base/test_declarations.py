"""Declarations: what files say of themselves, read and never run."""

import sys

import pytest

from ncttt import InputError
from ncttt.base.declarations import Declaration, declaration, declarations

MODULE = '''"""What it is."""

import nothing_that_exists

NAME = "a"
PLACE: float = 1.5
FIRST = SECOND = (1, 2)
COMPUTED = NAME * 2
UNHASHABLE = {[]: 1}
LEFT, RIGHT = 1, 2
BARE: int


class Kind:
    """A kind."""

    name = "kind"
    title: "str" = "Kind"
    made = len("x")


def run(x):
    """Run it,
    twice.

    Args: x.
    """


def _hidden(): ...


def silent(): ...


raise RuntimeError("nobody may run this")
'''


@pytest.fixture
def package(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    folder = tmp_path / "declared"
    (folder / "nested").mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "module.py").write_text(MODULE)
    (folder / "also.py").write_text("")
    (folder / "_private.py").write_text("(")
    (folder / "nested" / "__init__.py").write_text('"""Nested: ä."""\n', encoding="utf-8")
    (folder / "nested" / "inner.py").write_text("(")  # belongs to nested
    (folder / "notes.txt").write_text("(")
    yield folder
    sys.modules.pop("declared", None)


def test_what_a_file_declares(package):
    assert declarations("declared") == [
        Declaration("declared.also", "", {}, {}, {}),
        Declaration(
            "declared.module",
            "What it is.",
            {"NAME": "a", "PLACE": 1.5, "FIRST": (1, 2), "SECOND": (1, 2)},
            {"Kind": {"name": "kind", "title": "Kind"}},
            {"run": "Run it, twice.", "silent": ""},
        ),
        Declaration("declared.nested", "Nested: ä.", {}, {}, {}),
    ]
    assert not [name for name in sys.modules if name.startswith("declared.")]


def test_one_module_by_its_name(package):
    assert declaration("declared.module") == declarations("declared")[1]
    assert "declared.module" not in sys.modules
    with pytest.raises(InputError, match=r"there is no module 'declared\.nowhere'"):
        declaration("declared.nowhere")


@pytest.mark.parametrize("content", [b"def torn(:\n", b"\xff\xfe", b"x = '\0'"])
def test_a_file_that_is_no_python_is_named(package, content):
    (package / "broken.py").write_bytes(content)
    with pytest.raises(InputError, match=r"broken\.py cannot be read as Python: ."):
        declarations("declared")
