"""floors.txt has the lowest version of every dependency, so that `make floors` tries what pyproject.toml promises."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_floors_are_those_of_the_package():
    listed = re.search(r"^dependencies = \[(.*?)^\]", (ROOT / "pyproject.toml").read_text(), re.DOTALL | re.MULTILINE)
    assert listed is not None
    asked = dict(re.findall(r'"([\w-]+)(?:\[\w+\])?>=([\d.]+)', listed[1]))
    pinned = dict(re.findall(r"^([\w-]+)==([\d.]+)$", (ROOT / "floors.txt").read_text(), re.MULTILINE))
    assert pinned.keys() == asked.keys()
    for name, floor in asked.items():
        assert f"{pinned[name]}.".startswith(f"{floor}."), name
