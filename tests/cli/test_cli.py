"""The command line, as a user meets it: in a process of its own."""

import json
import os
import subprocess
import sys

import ncttt


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    # One thread, because two that wait for each other are very slow when something else runs beside the tests.
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "ncttt", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)


def test_version():
    assert run("--version").stdout.strip() == f"ncttt {ncttt.__version__}"


def test_info_for_people_and_for_scripts():
    found = run("info")
    assert found.returncode == 0
    assert "\x1b" not in found.stdout + found.stderr  # no colours in a pipe
    assert "torch" in found.stdout
    facts = json.loads(run("info", "--json").stdout)
    assert facts["ncttt"] == ncttt.__version__
    assert facts["methods"] == list(ncttt.METHODS)
    assert list(facts["models"]) == ncttt.zoo.names()
    assert facts["models"]["digits-small-ncttt"]["method"] == "nc_ttt"
    assert 0.9 < facts["models"]["digits-small-ncttt"]["accuracy"] <= 1
    assert "digits" in facts["data"]
    assert "digits-small-ncttt" in found.stdout


def test_without_a_command_there_is_help():
    found = run()
    assert found.returncode == 0
    assert "usage: ncttt" in found.stdout


def test_what_the_user_did_wrong_is_one_clear_line_and_code_2():
    found = run("demo", "--epochs", "0")
    assert found.returncode == 2
    assert "epochs must be positive; found 0" in found.stderr
    assert "Traceback" not in found.stderr


def test_debug_shows_the_traceback():
    found = run("demo", "--epochs", "0", "--debug")
    assert found.returncode != 0
    assert "Traceback" in found.stderr
