"""Training and calibrating on Datasets and DataLoaders of PyTorch, with colours and without, and grids on them."""

import pytest
import tiny
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import ncttt
from ncttt import InputError
from ncttt.data import ImageSet, batches, load

SETTINGS = {"epochs": 2, "batch_size": 32, "observers": tiny.QUIET}


def tensors(count: int = 160) -> TensorDataset:
    images, labels = next(iter(batches(tiny.digits(count), count)))
    return TensorDataset(images, labels)


def test_a_dataset_trains_as_the_same_image_set_does():
    expected, found = tiny.model(), tiny.model()
    ncttt.train(expected, tiny.digits(), held_out=load("digits", "val").subset(range(32)), **SETTINGS)
    ncttt.train(found, tensors(), held_out=load("digits", "val").subset(range(32)), **SETTINGS)
    assert tiny.same_weights(found, expected)
    assert found.classes == tuple("0123456789")


def test_a_loader_has_its_own_batches_and_is_reproducible():
    settings = {"epochs": 2, "observers": tiny.QUIET}
    models = [tiny.model(), tiny.model()]
    for model in models:
        loader = DataLoader(tensors(), 40, shuffle=True)
        history = ncttt.train(model, loader, held_out=DataLoader(tensors(30), 20), **settings)
    assert tiny.same_weights(*models)
    assert models[0].calibrated
    assert 0 <= history[-1].held_out["accuracy"] <= 1
    with pytest.raises(InputError, match="makes batches of 40; found batch_size=8"):
        ncttt.train(tiny.model(), loader, batch_size=8, **settings)


def test_calibration_takes_images_in_every_form():
    images = tensors(64).tensors[0]
    expected = tiny.model()
    expected.calibrate([images])
    for data in (TensorDataset(images), tensors(64), DataLoader(tensors(64), 64), tiny.digits(64), iter([images])):
        model = tiny.model()
        model.calibrate(data)
        torch.testing.assert_close(model.source_certainty, expected.source_certainty)


def grey_model() -> ncttt.Branched:
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(1, 8, 3, 2), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(128, 10)
    )
    return ncttt.attach(net, "2", ncttt.NCTTT(hidden=32, channels=8), torch.rand(2, 1, 32, 32))


def test_a_network_of_one_channel_trains_and_adapts():
    model, data = grey_model(), tiny.digits()
    grey = ImageSet(data.images[..., :1], data.labels, data.classes)
    history = ncttt.train(model, grey, epochs=3, batch_size=16, held_out=grey.subset(range(32)), observers=tiny.QUIET)
    assert history[-1].cross_entropy < history[0].cross_entropy
    images, _ = next(iter(batches(grey, 16)))
    assert images.shape == (16, 1, 32, 32)
    assert ncttt.Adapter(model)(images).shape == (16, 10)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (lambda: tiny.digits(), "expected images of 1 channel"),
        (lambda: TensorDataset(torch.rand(32, 1, 32, 32)), "has no labels, which a training needs"),
        (lambda: TensorDataset(torch.rand(32, 1, 32, 32), torch.arange(32)), "label 10 of image 10 is not in 0..9"),
        (lambda: TensorDataset(torch.rand(32, 1, 32, 32) * 255, torch.arange(32) % 10), "expected images in"),
    ],
)
def test_what_does_not_fit_the_model_is_said_before_the_training(data, message):
    with pytest.raises(InputError, match=message):
        ncttt.train(grey_model(), data(), **SETTINGS)
