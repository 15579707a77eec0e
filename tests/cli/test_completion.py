"""Completion, asked of a real shell."""

import shutil
import subprocess

import pytest
from every_command import EVERY

from ncttt.cli import main

SHELLS = ("bash", "zsh", "fish", "tcsh")
ASK = """
COMP_WORDS=({line}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 )); COMPREPLY=()
_shtab_ncttt ncttt "${{COMP_WORDS[COMP_CWORD]}}"; printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture(scope="module")
def scripts(tmp_path_factory) -> dict[str, str]:
    """What the command prints for every shell."""
    printed = {}
    for shell in SHELLS:
        with pytest.MonkeyPatch.context() as patch:
            lines: list[str] = []
            patch.setattr("builtins.print", lambda text, lines=lines: lines.append(f"{text}\n"))
            assert main(["completion", shell]) == 0
        printed[shell] = "".join(lines)
    return printed


def bash(script: str) -> str:
    done = subprocess.run(["bash", "--norc", "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr == ""
    return done.stdout


def completed(script: str, line: str) -> list[str]:
    """What bash offers for the last word of a line; '' stands for a word that is not begun."""
    return bash(script + ASK.format(line=line)).split()


needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")


@needs_bash
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("ncttt tr", ["train"]),
        ("ncttt --v", ["--version"]),
        ("ncttt data c", ["check", "corrupt"]),
        ("ncttt bench --store x --att", ["--attribution"]),
        ("ncttt data corrupt digits --constants ''", ["cifar", "imagenet"]),
        ("ncttt train --recipe.branch j", ["joint"]),
        ("ncttt train --held", ["--held-out"]),
        ("ncttt train --de", ["--debug", "--device"]),
        ("ncttt train --print", ["--print-config"]),
        ("ncttt completion ''", list(SHELLS)),
        ("ncttt data get --nothing-like-it", []),
    ],
)
def test_bash_offers(scripts, line, offered):
    assert completed(scripts["bash"], line) == offered


@needs_bash
def test_bash_offers_all_options_of_a_recipe(scripts):
    offered = completed(scripts["bash"], "ncttt train --rec")
    assert "--recipe.epochs" in offered
    assert all(word.startswith("--rec") for word in offered)


@needs_bash
def test_bash_offers_files_where_a_file_may_stand(scripts, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.yaml").touch()
    assert completed(scripts["bash"], "ncttt train --config m") == ["my.yaml"]
    assert completed(scripts["bash"], "ncttt train --threads m") == []


@needs_bash
def test_the_bash_script_registers_itself(scripts):
    assert "-F _shtab_ncttt ncttt" in bash(scripts["bash"] + "complete -p ncttt\n")


@pytest.mark.parametrize(("shell", "flag"), [("zsh", "-n"), ("fish", "--no-execute"), ("tcsh", "-n")])
def test_scripts_are_valid_where_their_shell_is_here(scripts, shell, flag, tmp_path):
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell}")
    (tmp_path / "script").write_text(scripts[shell])
    subprocess.run([shell, flag, str(tmp_path / "script")], check=True, timeout=60)


@pytest.mark.parametrize("shell", SHELLS)
def test_every_command_is_in_every_script(scripts, shell):
    words = {word for name in EVERY for word in name.split()}
    assert all(word in scripts[shell] for word in (*words, "recipe.epochs", "imagenet"))
