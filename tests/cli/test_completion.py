"""Completion, asked of a real shell."""

import shutil
import subprocess

import pytest

from ncttt.cli import command_parser
from ncttt.cli.commands.completion import SCRIPTS, words

FOUND = words(command_parser())
ASK = """
COMP_WORDS=({line}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 )); _ncttt; printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def completed(line: str) -> list[str]:
    """What bash offers for the last word of a line; '' stands for a word that is not begun."""
    script = SCRIPTS["bash"](FOUND) + ASK.format(line=line)
    found = subprocess.run(["bash", "--norc", "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert found.stderr == ""
    return found.stdout.split()


needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")


@needs_bash
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("ncttt tr", ["train"]),
        ("ncttt data c", ["check", "corrupt"]),
        ("ncttt train --rec", None),
        ("ncttt bench --store x --att", ["--attribution"]),
        ("ncttt data corrupt digits --constants ''", ["cifar", "imagenet"]),
        ("ncttt train --recipe.branch j", ["joint"]),
        ("ncttt completion ''", None),
        ("ncttt data get --nothing-like-it", []),
    ],
)
def test_bash_offers(line, offered):
    found = completed(line)
    if offered is not None:
        assert found == offered
    elif "train" in line:
        assert "--recipe.epochs" in found
        assert all(word.startswith("--rec") for word in found)
    else:
        assert {"bash", "zsh", "fish"} <= set(found)


@needs_bash
def test_the_bash_script_registers_itself():
    script = SCRIPTS["bash"](FOUND) + "complete -p ncttt\n"
    found = subprocess.run(["bash", "--norc", "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert "-F _ncttt ncttt" in found.stdout


@pytest.mark.parametrize(("shell", "flag"), [("zsh", "-n"), ("fish", "--no-execute")])
def test_scripts_are_valid_where_their_shell_is_here(shell, flag, tmp_path):
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell}")
    (tmp_path / "script").write_text(SCRIPTS[shell](FOUND))
    subprocess.run([shell, flag, str(tmp_path / "script")], check=True, timeout=60)


def test_every_command_is_in_every_script():
    for script in SCRIPTS.values():
        text = script(FOUND)
        assert all(word in text for word in ("train", "corrupt", "recipe.epochs", "imagenet"))
