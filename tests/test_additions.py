"""One place for one addition: a toy of each kind from outside the package, used as a researcher would use it."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

TOYS = '''
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from matplotlib.figure import Figure

import ncttt
from ncttt.adapt import Protocol
from ncttt.data import DataSet, ImageSet
from ncttt.data.corruptions import corruption


@dataclass(frozen=True, kw_only=True)
class Calm(ncttt.Method):
    """Lowers the logits by scale and shift of the normalisation layers."""

    name: ClassVar[str] = "calm"
    learns: ClassVar[bool] = True
    steps: int = 1
    lr: float = 1e-3
    norm: str = "batch"

    def parameters(self, model):
        return model.norm_parameters()

    def adaptation_loss(self, model, images):
        return ncttt.Objective(model(images).square().mean())


class Stripes(DataSet):
    title = "Rows or columns"
    classes = ("rows", "columns")
    splits = ("train", "fit", "val", "test")

    def read(self, root, split, **options):
        labels = np.arange(400 if split == "train" else 40) % 2
        images = np.random.default_rng(0).integers(0, 90, (len(labels), 32, 32, 3)).astype(np.uint8)
        images[labels == 0, ::2], images[labels == 1, :, ::2] = 200, 200
        return ImageSet(images, labels, self.classes, name=f"stripes {split}")


@corruption(cifar=((10,), (20,), (30,), (40,), (50,)), imagenet=((10,), (20,), (30,), (40,), (50,)))
def dusk(images, draws, loss):
    return np.maximum(images, loss) - np.uint8(loss)


PAIRS = Protocol("pairs", "forgets after two batches", batches=2)


def dots(request):
    figure = Figure()
    figure.subplots().plot([1, 2], [2, 1], "o")
    return figure
'''
COMMAND = '''"""A toy command."""

EXAMPLE = "ncttt greet --name world"


def greet(*, name: str = "you") -> None:
    """Greet somebody.

    Args:
        name: Whom to greet.
    """
    print(f"hello {name}")
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A researcher's folder: a file of toys, and an installed package that announces a command."""
    folder = tmp_path_factory.mktemp("researcher")
    (folder / "toys.py").write_text(TOYS)
    (folder / "installed").mkdir()
    (folder / "installed" / "toy_command.py").write_text(COMMAND)
    about = folder / "installed" / "toy-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[ncttt.commands]\ngreet = toy_command:greet\n")
    return folder


def ncttt(folder: Path, *words: str) -> str:
    """What the command prints when it is run in that folder."""
    path = os.pathsep.join([str(folder / "installed"), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    command = [Path(sys.executable).with_name("ncttt"), *words]
    run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.fixture(scope="module")
def checkpoint(folder) -> str:
    """A small model, trained on the toy data for the toy method."""
    small = [
        "--network_settings",
        "{width: 4}",
        "--recipe.lr",
        "0.02",
        "--recipe.epochs",
        "6",
        "--recipe.batch_size",
        "40",
        "--layer",
        "layer2",
    ]
    words = ["train", "--data", "toys:Stripes", "--method", "toys:Calm", "--out", "run", *small]
    assert json.loads(ncttt(folder, *words, "--json"))["test_accuracy"] > 0.9
    return "run/last"


def test_a_grid_of_a_method_a_set_a_corruption_and_a_protocol(folder, checkpoint):
    methods = f"[{{method: toys:Calm, checkpoint: {checkpoint}}}, {{method: ptbn, checkpoint: {checkpoint}}}]"
    words = ["--data", "toys:Stripes", "--corruptions", "[clean, toys:dusk]", "--protocols", "[episodic, toys:PAIRS]"]
    rows = json.loads(ncttt(folder, "bench", *words, "--batch_sizes", "[10]", "--methods", methods, "--json"))
    places = {(row["method"], row["corruption"], row["protocol"]) for row in rows}
    assert ("toys:Calm", "toys:dusk", "toys:PAIRS") in places
    assert {row["data"] for row in rows} == {"toys:Stripes"}
    assert "toys:Calm" in ncttt(folder, "rows", "show", "runs/bench.sqlite")
    ncttt(folder, "report", "runs/bench.sqlite", "--out", "page")
    assert "toys:Calm" in (folder / "page" / "index.html").read_text()


def test_a_tuning_of_the_method(folder, checkpoint):
    words = [
        "--data",
        "toys:Stripes",
        "--checkpoint",
        checkpoint,
        "--method",
        "toys:Calm",
        "--adapted",
        "{lr: [0.001, 0.01]}",
        "--batch_size",
        "10",
    ]
    trials = json.loads(ncttt(folder, "tune", *words, "--json"))["trials"]
    assert {trial["settings"]["lr"] for trial in trials} == {0.001, 0.01}


def test_adapting_to_files_by_the_method(folder, checkpoint):
    (folder / "photos").mkdir()
    for number in range(6):
        pixels = np.full((32, 32, 3), 60, np.uint8)
        pixels[:, ::2] = 200
        Image.fromarray(pixels).save(folder / "photos" / f"{number}.png")
    words = [
        "--model",
        checkpoint,
        "--method",
        "toys:Calm",
        "--images",
        "photos",
        "--out",
        "labels.csv",
        "--stop",
        "none",
    ]
    ncttt(folder, "adapt", *words)
    with (folder / "labels.csv").open() as file:
        assert [row["label"] for row in csv.DictReader(file)] == ["columns"] * 6


def test_a_figure(folder):
    ncttt(folder, "figures", "toys:dots", "--out", "figures")
    assert sorted(path.suffix for path in (folder / "figures").iterdir()) == [".png", ".svg"]


def test_a_command(folder):
    assert ncttt(folder, "greet", "--name", "world") == "hello world\n"
    assert "greet" in ncttt(folder, "--help")
