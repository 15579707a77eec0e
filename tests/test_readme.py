"""What the README shows is what happens."""

import re
from pathlib import Path

import pytest

from ncttt.cli import main

README = (Path(__file__).parents[1] / "README.md").read_text()


def test_the_ten_lines_run(tmp_path, monkeypatch, capsys):
    (block,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "README.md", "exec"), {})
    assert "Trace(losses=" in capsys.readouterr().out
    assert (tmp_path / "runs/checkpoint/model.safetensors").is_file()


def test_the_commands_exist(capsys):
    commands = re.findall(r"^ncttt ([a-z]+(?: [a-z]+)?)", README, re.MULTILINE)
    assert len(commands) >= 6
    for command in commands:
        words = command.split()
        words = words[:2] if words[0] == "data" else words[:1]
        with pytest.raises(SystemExit, match="0"):
            main([*words, "--help"])
        assert f"usage: ncttt {words[0]}" in capsys.readouterr().out


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (Path(__file__).parents[1] / target).exists(), target
