"""The command line, as a user meets it: in a process of its own."""

import json
import os
import subprocess
import sys
from importlib.metadata import version

import torch

import ncttt
import ncttt.cli


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    # One thread, because two that wait for each other are very slow when something else runs beside the tests.
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "ncttt", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)


def test_version():
    assert run("--version").stdout.strip() == f"ncttt {ncttt.__version__}"


def test_info_for_people_and_for_scripts():
    shown = run("info")
    assert shown.returncode == 0
    assert "\x1b" not in shown.stdout + shown.stderr  # no colours in a pipe
    assert f"torch     {version('torch')}" in shown.stdout
    facts = json.loads(run("info", "--json").stdout)
    assert facts["ncttt"] == ncttt.__version__
    assert facts["methods"] == list(ncttt.METHODS)
    assert list(facts["models"]) == ncttt.zoo.names()
    assert facts["models"]["digits-small-ncttt"]["method"] == "nc_ttt"
    assert 0.9 < facts["models"]["digits-small-ncttt"]["accuracy"] <= 1
    assert "digits" in facts["data"]
    assert facts["networks"] == list(ncttt.nets.MODELS)
    assert facts == ncttt.info()
    assert "digits-small-ncttt" in shown.stdout


def test_info_waits_for_torch_only_to_tell_of_devices():
    facts = json.loads(run("info", "--json", "--devices").stdout)
    assert facts["threads"] == 1
    assert facts["cuda"] == torch.cuda.device_count()
    assert facts == ncttt.info() | {"threads": 1, "cuda": facts["cuda"]}
    code = "import sys, ncttt; ncttt.info(); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_without_a_command_there_is_help():
    shown = run()
    assert shown.returncode == 0
    assert "usage: ncttt" in shown.stdout


def test_what_the_user_did_wrong_is_one_clear_line_and_code_2():
    refused = run("demo", "--epochs", "0")
    assert refused.returncode == 2
    assert "epochs must be positive; found 0" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_debug_shows_the_traceback():
    refused = run("demo", "--epochs", "0", "--debug")
    assert refused.returncode != 0
    assert "Traceback" in refused.stderr


def test_a_reader_that_goes_away_is_no_error():
    code = (
        "import subprocess, sys; sys.exit(subprocess.call([sys.executable, '-m', 'ncttt', 'info'], stdout=sys.stdout))"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.close()
    assert process.wait(60) == 0
    assert process.stderr.read() == ""


def test_ctrl_c_is_one_line_and_code_130(monkeypatch, capsys):
    def interrupted(words):
        raise KeyboardInterrupt

    monkeypatch.setattr(ncttt.cli, "find", interrupted)
    assert ncttt.cli.main(["info"]) == 130
    assert capsys.readouterr().err == "ncttt: interrupted; what was finished is kept\n"
