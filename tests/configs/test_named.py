"""Configurations that ship are found by name, from any folder; a path still works."""

import os
import subprocess
import sys

import pytest
import yaml

from ncttt import InputError, configs
from ncttt.cli import main
from ncttt.training import read_job

SHIPPED = [(command, name) for command in ("train", "bench", "tune") for name in configs.names(command)]


@pytest.mark.parametrize(("command", "name"), SHIPPED, ids="-".join)
def test_every_name_is_a_configuration_of_its_command(command, name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match="0"):
        main([command, "--config", name, "--print-config"])
    asked = yaml.safe_load(configs.find(command, name).read_text())
    assert asked.keys() <= yaml.safe_load(capsys.readouterr().out).keys()


def test_there_is_one_for_beginners_of_every_command():
    assert {command for command, name in SHIPPED if name == "digits"} == {"train", "bench", "tune"}


def test_a_file_goes_before_a_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert configs.find("train", "digits") == configs.HOME / "train/digits.yaml"
    (tmp_path / "digits").write_text("data: digits\nlayer: layer2\n")
    assert read_job("digits").layer == "layer2"
    assert read_job(tmp_path / "digits").layer == "layer2"


def test_a_folder_of_that_name_is_no_configuration(tmp_path, monkeypatch):
    (tmp_path / "digits").mkdir()
    monkeypatch.chdir(tmp_path)
    assert read_job("digits").layer == "layer3"


def test_an_unknown_name_lists_near_ones():
    with pytest.raises(InputError, match=r"no configuration cifar10-nctt; did you mean 'cifar10-ncttt'"):
        read_job("cifar10-nctt")


def test_both_spellings_of_the_option(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shown = []
    for words in (["--config", "digits"], ["--config=digits"], ["--config", str(configs.HOME / "train/digits.yaml")]):
        with pytest.raises(SystemExit, match="0"):
            main(["train", *words, "--recipe.epochs", "3", "--print-config"])
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1] == shown[2]
    assert yaml.safe_load(shown[0])["recipe"]["epochs"] == 3


def test_torch_is_not_needed_to_find_one(tmp_path):
    code = "import sys; from ncttt import configs; configs.find('train', 'digits'); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=os.environ).returncode == 0
