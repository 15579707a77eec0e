"""What the package says of itself: ranges without caps, pins of what is tested, links that lead somewhere."""

import re
import runpy
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

if sys.version_info < (3, 11):
    pytest.skip("tomllib came with Python 3.11", allow_module_level=True)
import tomllib

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
REPOSITORY = PROJECT["urls"]["Repository"]
EXTRAS = [Requirement(text) for extra in PROJECT["optional-dependencies"].values() for text in extra]
ASKED = [*map(Requirement, PROJECT["dependencies"]), *(each for each in EXTRAS if each.name != "ncttt")]
PINS = [
    Requirement(line) for line in (ROOT / "constraints.txt").read_text().splitlines() if line and line[0] not in "#"
]


def long_description() -> str:
    return runpy.run_path(str(ROOT / "setup.py"))["long_description"]()


def test_the_metadata_has_what_an_index_shows():
    assert {"authors", "classifiers", "keywords", "urls", "description"} <= PROJECT.keys()
    assert PROJECT["license"] == "MIT"
    assert all((ROOT / name).is_file() for name in PROJECT["license-files"])
    assert {"Repository", "Documentation", "Issues", "Changelog"} <= PROJECT["urls"].keys()
    assert all(url.startswith(REPOSITORY) for url in PROJECT["urls"].values())


def test_torch_has_no_upper_cap():
    (torch,) = (asked for asked in ASKED if asked.name == "torch")
    assert [clause.operator for clause in torch.specifier] == [">="]


@pytest.mark.parametrize("asked", ASKED, ids=str)
def test_what_is_asked_for_is_pinned_to_a_version_that_fits(asked):
    if any(clause.operator == "==" for clause in asked.specifier):
        return
    for python in ("3.10", "3.11", "3.12", "3.13"):
        pins = [pin for pin in PINS if pin.name == asked.name and applies(pin, python)]
        assert len(pins) == 1, python
        (clause,) = pins[0].specifier
        assert clause.operator == "=="
        assert asked.specifier.contains(clause.version)


def applies(pin: Requirement, python: str) -> bool:
    return pin.marker is None or pin.marker.evaluate({"python_version": python})


def test_every_pin_is_asked_for():
    assert {pin.name for pin in PINS} <= {asked.name for asked in ASKED}


def test_the_long_description_has_no_link_that_leads_nowhere():
    text, here = long_description(), (ROOT / "README.md").read_text()
    targets = re.findall(r"\]\(([^)\s]+)", text)
    assert len(targets) == len(re.findall(r"\]\(([^)\s]+)", here))
    for target in targets:
        assert target.startswith(("https://", "http://", "#")), target
        inside = re.fullmatch(rf"{re.escape(REPOSITORY)}/(?:blob|raw)/main/([^#]+)(#.*)?", target)
        assert not inside or (ROOT / inside[1]).exists(), target


def test_images_are_shown_and_not_linked(tmp_path, monkeypatch):
    described = runpy.run_path(str(ROOT / "setup.py"))
    (tmp_path / "README.md").write_text("![a](docs/a.png) [b](docs/b.md#c) [d](#e) [![f](g.svg)](h.md) [i](https://j)")
    (tmp_path / "pyproject.toml").write_text(f'[project.urls]\nRepository = "{REPOSITORY}"\n')
    described["long_description"].__globals__["HERE"] = tmp_path
    assert described["long_description"]() == (
        f"![a]({REPOSITORY}/raw/main/docs/a.png) [b]({REPOSITORY}/blob/main/docs/b.md#c) [d](#e) "
        f"[![f]({REPOSITORY}/raw/main/g.svg)]({REPOSITORY}/blob/main/h.md) [i](https://j)"
    )


def test_the_package_stays_small():
    files = [path for path in (ROOT / "src/ncttt").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert sum(path.stat().st_size for path in files) < 40e6
