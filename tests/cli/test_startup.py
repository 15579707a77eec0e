"""What answers at once: lists and help load neither torch nor anything that takes as long."""

import subprocess
import sys

import pytest
from every_command import EVERY

HEAVY = ("torch", "scipy", "sklearn", "matplotlib", "PIL")
LOADED = "import sys; from ncttt.cli import main\n{call}\nprint([n for n in {heavy} if n in sys.modules])"
QUICK = [["info"], ["info", "--json"], ["data", "list"], ["data", "list", "--json"], ["figures", "list"], ["--version"]]


def loaded(call: str) -> str:
    code = LOADED.format(call=call, heavy=HEAVY)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    return done.stdout.splitlines()[-1]


@pytest.mark.parametrize("words", QUICK, ids=" ".join)
def test_lists_wait_for_nothing_heavy(words):
    assert loaded(f"assert main({words}) == 0") == "[]"


def test_a_process_of_its_own_imports_no_torch():
    command = [sys.executable, "-X", "importtime", "-m", "ncttt", "data", "list"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    imported = {line.rsplit("|", 1)[1].strip() for line in done.stderr.splitlines() if "|" in line}
    assert "ncttt.cli" in imported
    assert not imported & {"torch", "scipy"}


def test_every_help_waits_for_nothing_heavy():
    asked = [[*name.split(), "--help"] for name in EVERY]
    call = f"for words in {asked}:\n    try: main(words)\n    except SystemExit: pass"
    assert loaded(call) == "[]"
