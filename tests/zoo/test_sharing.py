"""`ncttt push`, `ncttt pull` and `hf://` names against a stand-in hub on loopback, by real HTTP."""

import json
import socket

import hub_server
import pytest
import torch
import yaml
from hub_server import TOKEN
from PIL import Image

import ncttt
from ncttt import InputError, cli
from ncttt.testing.cases import attached, images
from ncttt.training.start import warm_start

NAME = "digits-small-ncttt"
REPOSITORY = "ada/digits"
FILES = {"model.json", "model.safetensors", "config.json", "results.json", "metrics.csv", "README.md"}


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """A hub that knows one token; nothing is read from or written to the user's own cache."""
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)  # a protocol of its own, behind the same calls
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.chdir(tmp_path)
    with hub_server.hub_server() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.address)
        # What the library makes of the variable when it is imported.
        monkeypatch.setattr(constants, "HF_URL_HOSTS", frozenset({"127.0.0.1"}), raising=False)
        yield server


def fails(capsys, *arguments) -> str:
    """The one line that a command ends with."""
    assert cli.main(list(arguments)) == 2
    out, error = capsys.readouterr()
    assert not out
    assert error.count("\n") == 1, error
    assert TOKEN not in error
    return error


def test_a_model_comes_back_as_it_was(hub, capsys, tmp_path):
    assert cli.main(["push", NAME, REPOSITORY, "--license", "mit", "--private"]) == 0
    assert capsys.readouterr().out == f"{hub.address}/{REPOSITORY}\n"
    assert hub.repositories[REPOSITORY].keys() == FILES
    assert hub.private[REPOSITORY] in (True, "private")
    assert cli.main(["pull", REPOSITORY]) == 0
    assert capsys.readouterr().out == "digits\n"
    assert {path.name for path in (tmp_path / "digits").iterdir()} == FILES
    for name in FILES - {"README.md"}:
        assert (tmp_path / "digits" / name).read_bytes() == (ncttt.zoo.HOME / NAME / name).read_bytes()
    pulled, shipped = ncttt.load("digits"), ncttt.load(NAME)
    assert torch.equal(pulled(images(2, size=32)), shipped(images(2, size=32)))
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_a_model_is_loaded_and_started_from_by_its_repository(hub):
    ncttt.zoo.push(NAME, REPOSITORY)
    shipped = ncttt.load(NAME)(images(2, size=32))
    assert torch.equal(ncttt.load(f"hf://{REPOSITORY}")(images(2, size=32)), shipped)
    assert torch.equal(ncttt.load(f"hf://{REPOSITORY}@{hub.commit_of(REPOSITORY)}")(images(2, size=32)), shipped)
    net = ncttt.models.small(width=16)
    warm_start(net, f"hf://{REPOSITORY}")
    assert torch.equal(net.fc.weight, ncttt.load(NAME).classifier.fc.weight)


def test_a_grid_and_a_stream_take_it_by_its_repository(hub, store, tmp_path):
    ncttt.zoo.push(NAME, REPOSITORY)
    entry = ncttt.benchmark.Entry(method="nc_ttt", checkpoint=f"hf://{REPOSITORY}")
    grid = ncttt.benchmark.Grid(data="digits", methods=[entry], corruptions=["clean"], images=32)
    (row,) = ncttt.benchmark.run_grid(grid, store, executor="here", cache=tmp_path / "scenarios").rows
    assert row["checkpoint"] == f"hf://{REPOSITORY}"
    (tmp_path / "photos").mkdir()
    Image.new("RGB", (32, 32)).save(tmp_path / "photos/one.png")
    told = ncttt.adapt.adapt_folders(f"hf://{REPOSITORY}", [str(tmp_path / "photos")], str(tmp_path / "out.csv"))
    assert told["images"] == 1


@pytest.mark.parametrize("name", [REPOSITORY, "./ada/digits", "digits"])
def test_only_the_prefix_fetches(hub, name):
    ncttt.zoo.push(NAME, REPOSITORY)
    hub.asked.clear()
    with pytest.raises(InputError, match=r"no checkpoint|no folder"):
        ncttt.load(name)
    assert not hub.asked


def test_the_card_says_what_is_recorded(hub):
    ncttt.zoo.push(NAME, REPOSITORY, license="mit")
    card = hub.repositories[REPOSITORY]["README.md"].decode()
    _, header, text = card.split("---\n", 2)
    told = yaml.safe_load(header)
    assert told["license"] == "mit"
    assert told["library_name"] == "ncttt"
    assert "nc_ttt" in told["tags"]
    results = json.loads((ncttt.zoo.HOME / NAME / "results.json").read_text())
    assert f"| test accuracy | {results['test_accuracy']:.2%} on the test images, not adapted |" in text
    for line in ("| network | small |", "| layer | layer3 |", "| method | nc_ttt |", "| epochs | 15 |"):
        assert line in text
    assert "| trained on | digits fit, 1167 images |" in text
    assert f'ncttt.load("hf://{REPOSITORY}")' in text


def test_a_card_claims_nothing_that_is_not_recorded(hub, tmp_path):
    ncttt.save(attached("branching", ncttt.NCTTT()), tmp_path / "mine")
    ncttt.zoo.push(tmp_path / "mine", REPOSITORY)
    card = hub.repositories[REPOSITORY]["README.md"].decode()
    assert hub.repositories[REPOSITORY].keys() == {"model.json", "model.safetensors", "README.md"}
    assert "license" not in card
    assert "accuracy" not in card
    assert "trained on" not in card
    assert "classifier=net" in card


def test_the_last_model_of_a_training_and_a_card_of_ones_own_are_pushed(hub, tmp_path):
    run = tmp_path / "run"
    ncttt.save(attached("resnet", ncttt.NCTTT()), run / "last")
    (run / "results.json").write_text('{"test_accuracy": 0.5}')
    (run / "state.safetensors").write_bytes(b"not for others")
    ncttt.zoo.push(run, REPOSITORY)
    files = hub.repositories[REPOSITORY]
    assert files.keys() == {"model.json", "model.safetensors", "results.json", "README.md"}
    assert b"50.00%" in files["README.md"]
    (run / "README.md").write_text("---\nlicense: mit\n---\nMine.\n")
    ncttt.zoo.push(run, REPOSITORY)  # a second time: there is such a repository already
    assert files["README.md"] == (run / "README.md").read_bytes()
    with pytest.raises(InputError, match="write the licence there"):
        ncttt.zoo.push(run, REPOSITORY, license="mit")


def test_what_is_not_there_or_not_allowed_is_one_line(hub, capsys, monkeypatch):
    assert "there is no repository ada/nothing on 127.0.0.1" in fails(capsys, "pull", "ada/nothing")
    assert "answers 403 for else/digits: it does not exist, or you have no permission" in fails(
        capsys, "push", NAME, "else/digits"
    )
    ncttt.zoo.push(NAME, REPOSITORY)
    assert "has no such revision" in fails(capsys, "pull", f"{REPOSITORY}@v9")
    assert "expected a repository as user/name" in fails(capsys, "pull", "digits")
    assert "digits exists already" in fails(capsys, "pull", REPOSITORY, "--out", str(ncttt.zoo.HOME / NAME)).replace(
        NAME, "digits"
    )
    assert "no folder 'nothing'" in fails(capsys, "push", "nothing", REPOSITORY)
    monkeypatch.setenv("HF_TOKEN", "hf_another")
    assert "answers 401" in fails(capsys, "push", NAME, REPOSITORY)


def test_a_hub_that_is_not_there_is_one_line(hub, capsys, monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    monkeypatch.setenv("HF_ENDPOINT", f"http://user:{TOKEN}@127.0.0.1:{port}")
    assert f"127.0.0.1:{port} cannot be used for ada/digits" in fails(capsys, "pull", REPOSITORY)
    assert "cannot be used" in fails(capsys, "push", NAME, REPOSITORY)


def test_what_is_damaged_or_too_large_is_not_kept(hub, capsys, tmp_path):
    ncttt.zoo.push(NAME, REPOSITORY)
    files = hub.repositories[REPOSITORY]
    whole = files["model.safetensors"]
    files["model.safetensors"] = whole[:-1] + bytes([whole[-1] ^ 1])
    error = fails(capsys, "pull", REPOSITORY)
    assert "ada/digits/model.safetensors is damaged" in error
    with pytest.raises(InputError, match="is damaged"):
        ncttt.load(f"hf://{REPOSITORY}")
    hub.sizes["model.safetensors"] = 5 << 30
    assert "model.safetensors may have 4096 MiB; found 5120 MiB" in fails(capsys, "pull", REPOSITORY)
    hub.sizes.clear()
    files["model.json"] = b"[]"
    assert "model.json: found []; expected values by name" in fails(capsys, "pull", REPOSITORY)
    del files["model.json"]
    assert "ada/digits holds no model of ncttt: model.json is missing" in fails(capsys, "pull", REPOSITORY)
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]


def test_other_files_of_a_repository_are_left_alone(hub, tmp_path):
    ncttt.zoo.push(NAME, REPOSITORY)
    hub.repositories[REPOSITORY]["pytorch_model.bin"] = b"a pickle"
    hub.repositories[REPOSITORY][".model.json.new"] = b"{}"
    hub.asked.clear()
    ncttt.zoo.pull(REPOSITORY, tmp_path / "mine")
    assert {path.name for path in (tmp_path / "mine").iterdir()} == FILES
    assert not [line for line in hub.asked if "pickle" in line or line.endswith((".bin", ".new"))]


def test_a_damaged_model_is_not_pushed(hub, capsys, tmp_path):
    ncttt.save(attached("resnet", ncttt.NCTTT()), tmp_path / "mine")
    (tmp_path / "mine/model.safetensors").write_bytes(b"something else")
    assert "is damaged" in fails(capsys, "push", str(tmp_path / "mine"), REPOSITORY)
    assert not hub.asked
