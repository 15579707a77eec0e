"""Help: grouped, short, with an example that parses, and there at once."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from every_command import EVERY

from ncttt.cli import main
from ncttt.cli.actions import options_of, spelling
from ncttt.cli.catalogue import all_commands, find
from ncttt.cli.groups import OPTIONS
from ncttt.cli.parser import parser_of

ROOT = Path(__file__).parents[2]
EXAMPLES = [example for command in EVERY.values() for example in command.examples]


def shown(capsys, *words: str) -> str:
    with pytest.raises(SystemExit, match="0"):
        main([*words, "--help"])
    return capsys.readouterr().out


@pytest.mark.parametrize("name", EVERY)
def test_every_command_tells_its_options_and_ends_with_an_example(name, capsys):
    text, command = shown(capsys, *name.split()), EVERY[name]
    lines = text.splitlines()
    assert lines[0].startswith(f"usage: ncttt {name}".rstrip())
    for option in [] if command.commands else options_of(parser_of(command)):
        assert sum(line.strip().split(" ")[0] == spelling(option) for line in lines) == 1, spelling(option)
    assert lines[-1].strip() == command.examples[-1]
    assert not [word for word in ("type:", "null", "Optional", "<class", "typing.") if word in text]


@pytest.mark.parametrize("name", [name for name, command in EVERY.items() if command.commands])
def test_a_list_of_commands_names_every_one(name, capsys):
    lines = shown(capsys, *name.split()).splitlines()
    for word in EVERY[name].commands:
        assert sum(line.startswith(f"  {word} ") for line in lines) == 1, word


def test_the_first_help_names_what_all_commands_have_in_common(capsys):
    lines = [line.split() for line in shown(capsys).splitlines()]
    for name in ("--version", "--debug", "--config", "--print-config"):
        assert any(words[:1] == [name] for words in lines), name


def test_only_the_first_help_explains_configurations(capsys):
    assert "YAML" in shown(capsys)
    assert not [line for line in shown(capsys, "train").splitlines() if line.strip().startswith("--config FILE")]


def test_defaults_stand_beside_options(capsys):
    text = " ".join(shown(capsys, "train").split())
    assert "Passes over the training images. (default: 10)" in text
    assert "--recipe.seed N Seed of the order of images, the augmentation and the noise. (default: 0)" in text
    assert "Folder for checkpoints, metrics, curves and results. (required)" in text
    assert "--network-settings {NAME: VALUE} Settings of the network, such as a width. --start" in text


def test_narrow_and_wide_terminals(capsys, monkeypatch):
    for columns in (60, 200):
        monkeypatch.setenv("COLUMNS", str(columns))
        lines = shown(capsys, "bench").split("example:")[0].splitlines()
        assert max(map(len, lines)) <= min(columns, 100)


def test_an_option_has_one_group():
    names = [name for group in OPTIONS.values() for name in group]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_parse(example, monkeypatch):
    monkeypatch.chdir(ROOT)
    inner = example.removeprefix('eval "$(').split(')"')[0]
    words = shlex.split(inner, comments=True)
    assert words[0] == "ncttt"
    command, rest = find(words[1:])
    parser_of(command).parse_args(rest)


def test_help_and_complaints_wait_for_nothing_heavy():
    code = (
        "import sys; from ncttt.cli import main\n"
        "for words in sys.argv[1:]:\n"
        "    try: main(words.split())\n"
        "    except SystemExit: pass\n"
        "print([name for name in ('torch', 'matplotlib', 'sklearn', 'scipy') if name in sys.modules])"
    )
    asked = [f"{name} --help" for name in EVERY]
    done = subprocess.run([sys.executable, "-c", code, "trian", *asked], capture_output=True, text=True, timeout=120)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr
    assert done.stdout.count("usage: ncttt") == len(asked)


def test_the_groups_of_the_first_help(capsys):
    lines = shown(capsys).splitlines()
    titles = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
    groups = dict.fromkeys(command.group for command in all_commands().commands.values())
    assert sorted(titles) == sorted(f"{title}:" for title in (*groups, "options", "example"))
