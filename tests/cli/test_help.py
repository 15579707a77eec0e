"""Help: grouped, short, with an example that parses, and there at once."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from ncttt.cli import command_parser, main
from ncttt.cli.actions import commands_of, options_of, spelling, walk
from ncttt.cli.examples import EXAMPLES
from ncttt.cli.groups import COMMANDS, OPTIONS

ROOT = Path(__file__).parents[2]
ALL = {" ".join(words): found for words, found in walk(command_parser())}


def shown(capsys, *words: str) -> str:
    with pytest.raises(SystemExit, match="0"):
        main([*words, "--help"])
    return capsys.readouterr().out


@pytest.mark.parametrize("command", ALL)
def test_every_command_tells_its_options_and_ends_with_an_example(command, capsys):
    text = shown(capsys, *command.split())
    lines = text.splitlines()
    assert lines[0].startswith(f"usage: ncttt {command}".rstrip())
    for option in options_of(ALL[command]):
        assert sum(line.strip().split(" ")[0] == spelling(option) for line in lines) == 1, spelling(option)
    assert lines[-1].strip() == EXAMPLES[command][-1]
    assert not [word for word in ("type:", "null", "Optional", "<class", "typing.") if word in text]


def test_the_first_help_names_every_command_and_what_all_have_in_common(capsys):
    lines = [line.split() for line in shown(capsys).splitlines()]
    for name in [*commands_of(ALL[""]), "--version", "--debug", "--config", "--print-config"]:
        assert any(words and name in words[0:1] for words in lines), name


def test_only_the_first_help_explains_configurations(capsys):
    assert "YAML" in shown(capsys)
    assert not [line for line in shown(capsys, "train").splitlines() if line.strip().startswith("--config FILE")]


def test_defaults_stand_beside_options(capsys):
    text = " ".join(shown(capsys, "train").split())
    assert "Passes over the training images. (default: 10)" in text
    assert "--recipe.seed N Of the order of images, the augmentation and the noise. (default: 0)" in text
    assert "Folder for checkpoints, metrics, curves and results. (required)" in text


def test_narrow_and_wide_terminals(capsys, monkeypatch):
    for columns in (60, 200):
        monkeypatch.setenv("COLUMNS", str(columns))
        lines = shown(capsys, "bench").split("example:")[0].splitlines()
        assert max(map(len, lines)) <= min(columns, 100)


def test_an_option_has_one_group():
    names = [
        name for group in (*OPTIONS.values(), *COMMANDS.values()) for name in group if name not in ("data", "train")
    ]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("example", [line for lines in EXAMPLES.values() for line in lines])
def test_examples_parse(example, monkeypatch):
    monkeypatch.chdir(ROOT)
    inner = example.removeprefix('eval "$(').split(')"')[0]
    words = shlex.split(inner, comments=True)
    assert words[0] == "ncttt"
    ALL[""].parse_args(words[1:])


def test_help_and_complaints_wait_for_nothing_heavy():
    code = (
        "import sys; from ncttt.cli import main\n"
        "for words in sys.argv[1:]:\n"
        "    try: main(words.split())\n"
        "    except SystemExit: pass\n"
        "print([name for name in ('torch', 'matplotlib', 'sklearn') if name in sys.modules])"
    )
    asked = [f"{command} --help" for command in ALL]
    found = subprocess.run([sys.executable, "-c", code, "trian", *asked], capture_output=True, text=True, timeout=120)
    assert found.stdout.splitlines()[-1] == "[]", found.stderr
