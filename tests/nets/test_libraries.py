"""Networks of other libraries by name: recorded, rebuilt without the user's help, never fetched unasked.

A toy library stands for timm here, so that all of it runs everywhere; `test_real_libraries.py` has the real ones.
"""

import json

import pytest
import torch
from torch import nn

import ncttt
from ncttt import InputError, cli, models
from ncttt.nets.libraries import LIBRARIES, Library
from ncttt.testing.cases import CLASSES, images
from ncttt.training import Recipe, run_job
from ncttt.training.job import Job

ASKED: list[tuple[str, bool]] = []


def make_toy(module, name, pretrained, settings):
    ASKED.append((name, pretrained))
    if name != "pair":
        raise KeyError(name)
    width, classes = settings.get("width", 4), settings.get("num_classes", 10)
    stages = [nn.Sequential(nn.Conv2d(i, width, 3, 2, 1), nn.BatchNorm2d(width), nn.ReLU()) for i in (3, width)]
    net = nn.Sequential(*stages, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, classes))
    if pretrained:
        nn.init.constant_(net[0][0].weight, 0.25)
    return net, {"name": name, **settings}


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    """A fourth library, whose module every Python has."""
    ASKED.clear()
    monkeypatch.setitem(LIBRARIES, "toy", Library("colorsys", "toy", make_toy))


def saved(folder, **settings):
    net = models.build("toy:pair", num_classes=CLASSES, **settings)
    model = ncttt.attach(net, "auto", ncttt.NCTTT(hidden=8), images(2)).eval()
    ncttt.save(model, folder)
    return model


def change(folder, **architecture):
    described = json.loads((folder / "model.json").read_text())
    described["architecture"] |= architecture
    (folder / "model.json").write_text(json.dumps(described))


def test_a_checkpoint_rebuilds_the_network_and_does_not_ask_for_pretrained_weights(tmp_path):
    model = saved(tmp_path, width=6, pretrained=True)
    assert ASKED[0] == ("pair", True)
    assert ncttt.zoo.stored.description(tmp_path)["architecture"] == {
        "name": "toy:pair",
        "num_classes": CLASSES,
        "width": 6,
    }
    ASKED.clear()
    again = ncttt.load(tmp_path)
    assert ASKED == [("pair", False)] * 2  # once without memory, to compare shapes
    assert torch.equal(again(images(4)), model(images(4)))
    assert torch.equal(ncttt.Adapter(again)(images(4)), ncttt.Adapter(model)(images(4)))
    ncttt.save(again, tmp_path / "again")
    assert ncttt.load(tmp_path / "again").layer == "1"


@pytest.mark.parametrize(
    "described",
    [
        {"pretrained": True},
        {"name": "hf:./mine"},
        {"name": "hf:user/name"},
        {"name": "hf:..\\mine"},
        {"name": 3},
    ],
)
def test_no_description_fetches_weights_or_names_a_folder(tmp_path, described):
    saved(tmp_path)
    change(tmp_path, **described)
    ASKED.clear()
    with pytest.raises(InputError, match="expected the name and settings of a network"):
        ncttt.load(tmp_path)
    assert not ASKED


@pytest.mark.parametrize("setting", ["checkpoint_path", "pretrained_cfg", "weights", "cache_dir", "backbone"])
def test_no_setting_names_weights(tmp_path, setting):
    with pytest.raises(InputError, match=f"takes no setting '{setting}'"):
        models.build("toy:pair", **{setting: "anything"})
    saved(tmp_path)
    change(tmp_path, **{setting: "anything"})
    with pytest.raises(InputError, match=f"takes no setting '{setting}'"):
        ncttt.load(tmp_path)


def test_a_network_that_was_changed_since_is_its_authors_own(tmp_path):
    net = models.build("toy:pair", num_classes=CLASSES)
    net[2] = nn.AdaptiveMaxPool2d(1)
    ncttt.save(ncttt.attach(net, "auto", ncttt.NCTTT(hidden=8), images(2)), tmp_path)
    with pytest.raises(InputError, match="author's own"):
        ncttt.load(tmp_path)


def test_mistakes_are_named(monkeypatch):
    with pytest.raises(InputError, match=r"no network 'other:pair'.*; there are: .*timm:\.\.\., .*hf:\.\.\."):
        models.build("other:pair")
    with pytest.raises(InputError, match="colorsys cannot make 'toy:par' with"):
        models.build("toy:par")
    with pytest.raises(InputError, match="numbers, texts or lists; found width="):
        models.build("toy:pair", width={"a": 1})
    with pytest.raises(InputError, match="pretrained must be true or false; found 'yes'"):
        models.build("toy:pair", pretrained="yes")
    monkeypatch.setitem(LIBRARIES, "toy", Library("no_such_library", "toy", make_toy))
    with pytest.raises(InputError, match=r"need no_such_library, which is not installed; pip install 'ncttt\[toy\]'"):
        models.build("toy:pair")


def test_a_library_that_cannot_be_imported_says_why(monkeypatch, tmp_path):
    (tmp_path / "broken_library.py").write_text("raise RuntimeError('operator torchvision::nms does not exist\\nat')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(LIBRARIES, "toy", Library("broken_library", "toy", make_toy))
    with pytest.raises(InputError, match="cannot be imported: operator torchvision::nms does not exist; pip install"):
        models.build("toy:pair")


def test_the_command_line_says_it_in_one_line(tmp_path, capsys):
    arguments = ["--data", "digits", "--network", "timm:nothing", "--out", str(tmp_path / "run")]
    assert cli.main(["train", *arguments]) == 2  # whether timm is installed or not
    error = capsys.readouterr().err
    assert "timm" in error
    assert error.count("\n") == 1


def test_a_training_by_name_with_an_automatic_layer_is_measured_by_a_grid(tmp_path, store):
    recipe, lines = Recipe(epochs=1, batch_size=64, auxiliary_weight=1.0), []
    job = Job(
        data="digits",
        network="toy:pair",
        network_settings={"pretrained": True},
        layer="auto",
        method_settings={"hidden": 8},
        recipe=recipe,
    )
    results = run_job(job, tmp_path / "run", observers=[], say=lines.append)
    assert lines == ["layer auto is 1"]
    config = json.loads((tmp_path / "run/config.json").read_text())
    assert config["model"]["layer"] == "1"
    assert config["model"]["architecture"] == {"name": "toy:pair", "num_classes": 10}
    assert config["about"]["pretrained"] is True
    ASKED.clear()
    run_job(job, tmp_path / "run", resume=True, observers=[])  # its weights come from the run
    assert ("pair", True) not in ASKED
    entries = [{"method": "nc_ttt", "checkpoint": str(tmp_path / "run/last")}]
    grid = ncttt.benchmark.Grid(
        data="digits", methods=[ncttt.benchmark.Entry(**entry) for entry in entries], corruptions=["clean"], images=64
    )
    rows = ncttt.benchmark.run_grid(grid, store, executor="here", cache=tmp_path / "cache").rows
    assert len(rows) == 1
    assert 0 <= results["test_accuracy"] <= 1
