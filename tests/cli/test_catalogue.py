"""Commands are found by their files, and in other packages; only the one that is asked for is imported."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
from every_command import EVERY

import ncttt.cli.commands
from ncttt import InputError
from ncttt.cli.catalogue import all_commands, find
from ncttt.cli.groups import GROUPS

FOLDER = Path(ncttt.cli.commands.__file__).parent
FILES = sorted(FOLDER.rglob("[!_]*.py"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(FOLDER)))
def test_a_command_is_a_file_with_one_public_function_of_its_name(file):
    name = " ".join(file.relative_to(FOLDER).with_suffix("").parts)
    public = [
        node.name
        for node in ast.parse(file.read_text()).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
    ]
    assert [function.rstrip("_") for function in public] == [file.stem]
    assert EVERY[name].load().__name__ == public[0]
    assert EVERY[name].help
    assert EVERY[name].examples


def test_there_are_no_other_commands():
    runs = {name for name, command in EVERY.items() if not command.commands}
    assert runs == {" ".join(file.relative_to(FOLDER).with_suffix("").parts) for file in FILES}


def test_every_command_has_a_group_that_has_a_place():
    assert {command.group for command in all_commands().commands.values()} == set(GROUPS)


def test_words_after_a_command_are_its_own():
    command, rest = find(["data", "get", "--root", "data"])
    assert (command.name, rest) == ("ncttt data get", ["--root", "data"])
    assert find(["data", "--help", "get"])[0].name == "ncttt data"
    with pytest.raises(InputError, match=r"no option '--versoin'; did you mean '--version'\? \(see ncttt --help\)"):
        find(["--versoin"])


TOY = '''"""A toy."""

EXAMPLE = "ncttt hello --name world"
GROUP = "begin"


def hello(*, name: str = "you", loud: bool = False) -> None:
    """Greet somebody; politely.

    Args:
        name: Who is greeted.
        loud: Shout.
    """
    print(f"hello {name}{'!' if loud else ''}")


something = 3
'''


@pytest.fixture
def toy(tmp_path: Path):
    """Runs `ncttt` where another package announces commands, a good one and three that cannot be used."""
    (tmp_path / "toy.py").write_text(TOY)
    (tmp_path / "torn.py").write_text("def torn(:\n")
    about = tmp_path / "toy-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n")
    announced = ["hello = toy:hello", "torn = torn:torn", "gone = nowhere.at_all:gone", "number = toy:something"]
    (about / "entry_points.txt").write_text("\n".join(["[ncttt.commands]", *announced, "train = toy:hello", ""]))

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        paths = os.pathsep.join([str(tmp_path), *sys.path])
        command = [sys.executable, "-m", "ncttt", *words]
        return subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": paths})

    return run


def test_another_package_adds_a_command(toy):
    assert toy("hello", "--name", "you", "--loud").stdout == "hello you!\n"
    lines = toy("--help").stdout.splitlines()
    group = lines[lines.index("begin:") : lines.index("train and adapt:")]
    assert [line.split() for line in group if "hello" in line] == [["hello", "Greet", "somebody."]]
    text = toy("hello", "--help").stdout
    assert "Greet somebody; politely." in text
    assert "--name NAME  Who is greeted. (default: you)" in text
    assert text.endswith("example:\n  ncttt hello --name world\n")


def test_a_broken_package_spoils_nothing_else(toy):
    listed = toy("--help")
    assert listed.returncode == 0
    assert "other commands:" in listed.stdout
    for name, reason in {
        "torn": "an installed package announces the command 'torn', but cannot load 'torn:torn': ",
        "gone": "an installed package announces the command 'gone', but cannot load 'nowhere.at_all:gone': ",
        "number": "the command 'number' is no function; found 3",
    }.items():
        assert name in listed.stdout
        refused = toy(name)
        assert refused.returncode == 2
        assert refused.stderr.startswith(f"ncttt: {reason}")
        assert refused.stderr.count("\n") == 1


def test_nobody_replaces_a_command_of_our_own(toy):
    assert toy("train", "--help").stdout.startswith("usage: ncttt train --out OUT")


def test_only_the_command_that_is_asked_for_is_imported():
    code = (
        "import sys; from ncttt.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "print([name for name in sys.modules if name.startswith('ncttt.cli.commands.') or name == 'jsonargparse'])"
    )
    for words, imported in {
        ("--help",): [],
        ("data", "--help"): [],
        ("trian",): [],
        ("rows", "seed", "--help"): ["jsonargparse", "ncttt.cli.commands.rows", "ncttt.cli.commands.rows.seed"],
    }.items():
        printed = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
        assert ast.literal_eval(printed.stdout.splitlines()[-1]) == imported
