"""What the README shows is what happens."""

import re
from pathlib import Path

import pytest

from ncttt.cli import main

README = (Path(__file__).parents[1] / "README.md").read_text()


def test_the_eight_lines_run_and_adaptation_helps(capsys):
    (block,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    exec(compile(block, "README.md", "exec"), {})
    frozen, adapted, trace = capsys.readouterr().out.splitlines()
    assert trace.startswith("Trace(losses=")
    told = [float(number) for number in re.findall(r"prints (0\.\d+) .* and (0\.\d+) for the adapted", README)[0]]
    assert [float(line.split()[1]) for line in (frozen, adapted)] == pytest.approx(told, abs=0.01)
    assert told[1] > told[0] + 0.2


def test_the_commands_exist(capsys):
    commands = re.findall(r"`ncttt ([a-z]+(?: [a-z]+)?)", README)
    assert commands
    for command in commands:
        words = command.split()
        words = words[:2] if words[0] == "data" else words[:1]
        with pytest.raises(SystemExit, match="0"):
            main([*words, "--help"])
        assert f"usage: ncttt {words[0]}" in capsys.readouterr().out


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (Path(__file__).parents[1] / target).exists(), target
