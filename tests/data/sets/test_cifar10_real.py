"""CIFAR-10 itself, fetched, and a network trained elsewhere that must score on it what it scored there."""

import json
import time

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from ncttt import Branched, Source, zoo
from ncttt import load as load_model
from ncttt.cli import main
from ncttt.data import batches, check, load
from ncttt.nets import build

pytestmark = pytest.mark.network


def test_the_command_fetches_sixty_thousand_verified_images(tmp_path, capsys):
    start = time.monotonic()
    assert main(["data", "get", "cifar10", "--root", str(tmp_path)]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "cifar-10-batches-bin")
    assert time.monotonic() - start < 300
    assert set(check("cifar10", tmp_path).values()) == {"ok"}
    assert [path.name for path in tmp_path.iterdir()] == ["cifar-10-batches-bin"]


def test_the_official_numbers_of_images(cifar10_root):
    train, test = load("cifar10", "train", cifar10_root), load("cifar10", "test", cifar10_root)
    assert np.bincount(train.labels).tolist() == [5000] * 10
    assert np.bincount(test.labels).tolist() == [1000] * 10
    # The published per-channel mean of the training images.
    assert np.asarray(train.images).mean((0, 1, 2)) / 255 == pytest.approx([0.4914, 0.4822, 0.4465], abs=1e-4)


def test_the_validation_part_is_balanced(cifar10_root):
    fit, val = load("cifar10", "fit", cifar10_root), load("cifar10", "val", cifar10_root)
    assert np.bincount(val.labels).tolist() == [500] * 10
    assert np.bincount(fit.labels).tolist() == [4500] * 10


IMAGENET, HALVES = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)), ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "normalisation", "accuracy"), [("resnet20", IMAGENET, 0.9173), ("resnet26gn", HALVES, 0.9083)]
)
@torch.inference_mode()
def test_a_network_trained_elsewhere_scores_what_it_should(shared, cifar10_root, name, normalisation, accuracy):
    net = build(name)
    net.load_state_dict(load_file(shared / f"models/{name}-cifar10.safetensors"))
    model = Branched(net, None, Source(), mean=normalisation[0], std=normalisation[1]).eval()
    right = sum(
        int((model(images).argmax(1) == labels).sum())
        for images, labels in batches(load("cifar10", "test", cifar10_root), 500)
    )
    # Another processor may round a handful of images to the other side.
    assert right / 10_000 == pytest.approx(accuracy, abs=5e-4)


@pytest.mark.parametrize("name", [name for name in zoo.names() if name.startswith("cifar10-")])
@torch.inference_mode()
def test_a_model_of_the_zoo_scores_what_it_says(name, cifar10_root):
    said = json.loads((zoo.HOME / name / "results.json").read_text())["test_accuracy"]
    model, data = load_model(name), load("cifar10", "test", cifar10_root)
    right = sum(int((model(images).argmax(1) == labels).sum()) for images, labels in batches(data, 500))
    # Another processor may round a handful of images to the other side.
    assert right / 10_000 == pytest.approx(said, abs=5e-4)
