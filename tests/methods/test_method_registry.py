"""METHODS: names, titles and places without torch; methods of other packages and of the user's own files."""

import json
import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest

import ncttt
from ncttt import NCTTT, InputError, Tent
from ncttt.methods import METHODS, method_for, method_from, place_of, registry, settings_of, title_of
from ncttt.methods.registry import listings
from ncttt.noise import StudentT
from ncttt.testing.cases import images

MINE = """
    from dataclasses import dataclass
    from typing import ClassVar

    import ncttt

    @dataclass(frozen=True, kw_only=True)
    class Mine(ncttt.PTBN):
        name: ClassVar[str] = "mine"
        title: ClassVar[str] = "Mine"
        place: ClassVar[float] = 35
        weight: float = 0.5

    def no_method():
        pass
"""


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A module of the user's own, importable and not yet imported."""
    (tmp_path / "mine_module.py").write_text(textwrap.dedent(MINE))
    monkeypatch.syspath_prepend(tmp_path)
    yield "mine_module:Mine"
    sys.modules.pop("mine_module", None)
    for name in [name for name in METHODS._loaded if name.startswith("mine_module")]:
        del METHODS._loaded[name]


def run(script: str, *folders: Path) -> str:
    paths = [*map(str, folders), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_method_says_its_name_its_title_and_its_place():
    for name, method in METHODS.items():
        assert (method.name, method.title, method.place) == (name, title_of(name), place_of(name))
        assert name.isidentifier()
        assert method.title
    titles, places = ([getattr(method, field) for method in METHODS.values()] for field in ("title", "place"))
    assert len(set(titles)) == len(titles)
    assert len(set(places)) == len(places)
    assert places == sorted(places)
    assert list(METHODS) == list(listings())


def test_a_list_of_methods_needs_no_torch():
    script = """
import sys
from ncttt.methods import METHODS, title_of
assert "nc_ttt" in list(METHODS) and title_of("nc_ttt") == "NC-TTT"
print([name for name in ("torch", "numpy", "scipy", "ncttt.methods.nc_ttt") if name in sys.modules])
"""
    assert run(script).strip() == "[]"


def test_an_installed_package_adds_a_method_by_an_entry_point(tmp_path):
    (tmp_path / "mine_module.py").write_text(textwrap.dedent(MINE))
    described = tmp_path / "mine-1.0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    points = "[ncttt.methods]\nmine = mine_module:Mine\ntent = mine_module:Mine\nwrong = mine_module:no_method\n"
    (described / "entry_points.txt").write_text(points)
    script = """
import ncttt
from ncttt.methods import METHODS, method_from, settings_of, title_of
assert list(METHODS)[-2:] == ["mine", "wrong"], list(METHODS)
assert METHODS["tent"] is ncttt.Tent
assert (METHODS["mine"].__name__, title_of("mine")) == ("Mine", "Mine")
assert settings_of(METHODS["mine"]())["name"] == "mine"
assert method_from({"name": "mine", "weight": 2.0}).weight == 2.0
try:
    METHODS["wrong"]
except ncttt.InputError as error:
    print(error)
"""
    assert "'wrong' is no method: expected a subclass of ncttt.Method" in run(script, tmp_path)


@pytest.mark.parametrize("method", [*(kind() for kind in METHODS.values()), NCTTT(noise=StudentT(df=7.0))], ids=str)
def test_settings_survive_as_json(method):
    assert method_from(json.loads(json.dumps(settings_of(method)))) == method


def test_a_method_of_ones_own_is_found_by_its_address(mine):
    kind = METHODS.find(mine)
    assert kind.__name__ == "Mine"
    settings = settings_of(kind(weight=0.25))
    assert (settings["name"], settings["weight"]) == (mine, 0.25)
    assert method_from(json.loads(json.dumps(settings))) == kind(weight=0.25)
    assert method_for(Tent(), mine, {"weight": 1.0}) == kind(weight=1.0)
    assert (title_of(mine), place_of(mine)) == ("Mine", 35)


def test_a_title_is_no_reason_to_import(mine):
    assert title_of(mine) == mine
    assert place_of("nowhere:Mine") == float("inf")
    assert "mine_module" not in sys.modules


def test_an_address_is_saved_and_its_module_must_be_imported_by_the_user(mine, tmp_path):
    method = METHODS.find(mine)()
    model = ncttt.attach(ncttt.models.small(5, width=4), "layer2", method, images(2))
    ncttt.save(model, tmp_path / "model")
    assert ncttt.load(tmp_path / "model").method == method
    del sys.modules["mine_module"]
    with pytest.raises(
        InputError, match=r"was trained for the method mine_module:Mine, .* or import mine_module first"
    ):
        ncttt.load(tmp_path / "model")
    assert "mine_module" not in sys.modules


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("tnt", "no method 'tnt'; did you mean 'tent'"),
        ("nowhere:Mine", "cannot load 'nowhere:Mine': No module named 'nowhere'"),
        ("mine_module:Yours", "cannot load 'mine_module:Yours': .*has no attribute 'Yours'"),
        ("mine_module:no_method", "is no method: expected a subclass of ncttt.Method; found <function no_method"),
    ],
)
def test_what_is_no_method_is_named(mine, name, message):
    with pytest.raises(InputError, match=message):
        method_from({"name": name})


def test_a_class_without_an_address_cannot_be_saved():
    @dataclass(frozen=True, kw_only=True)
    class Local(ncttt.PTBN):
        pass

    with pytest.raises(InputError, match=r"Local has no address.*put it into a module of its own"):
        settings_of(Local())
    typed = type("Typed", (Tent,), {"__module__": "__main__"})
    with pytest.raises(InputError, match="Typed has no address"):
        settings_of(typed())


def test_settings_that_cannot_be_are_named():
    with pytest.raises(InputError, match="method 'tent' has no setting 'step'; did you mean 'steps'"):
        method_from({"name": "tent", "step": 1})
    with pytest.raises(InputError, match=r"the settings .* of tent cannot be"):
        method_from({"name": "tent"}, steps="many")


def test_a_method_that_says_no_title_and_no_place_comes_last_under_its_name(monkeypatch):
    from ncttt.base.declarations import Declaration

    plain = Declaration("ncttt.methods.plain", "", {}, {"Plain": {"name": "plain"}}, {})
    known = registry.declarations("ncttt.methods")
    monkeypatch.setattr(registry, "declarations", lambda package: [plain, *known])
    registry.listings.cache_clear()
    try:
        assert list(registry.listings())[-1] == "plain"
        assert registry.title_of("plain") == "plain"
    finally:
        registry.listings.cache_clear()
