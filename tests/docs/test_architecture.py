"""The committed picture of the packages shows the layers of the import contract and the imports of the code."""

import importlib.util
import re
import sys

from page_contents import ROOT


def script():
    """The script that draws the picture, which lies outside the package, as a module."""
    spec = importlib.util.spec_from_file_location("architecture", ROOT / "docs/architecture.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_the_picture_shows_the_contract_and_the_imports():
    drawing = script()
    found, drawn = drawing.read_architecture(), drawing.drawn()
    again = "`make architecture` draws the picture again"
    assert drawn.layers == found.layers, again
    assert drawn.imports == found.imports, again
    assert ["cli", "report"] in found.imports


def test_the_design_page_describes_every_package():
    page = (ROOT / "docs/design.md").read_text()
    described = set(re.findall(r"^\| `(\w+)/` \|", page, re.MULTILINE))
    assert described == set(script().read_architecture().packages) - {"models"}  # `nets` has it as its public name
