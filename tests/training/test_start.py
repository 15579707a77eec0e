"""Warm starts take weights from folders, the zoo and files, and execute nothing."""

import pickle

import pytest
import tiny
import torch
from safetensors.torch import save_file

import ncttt
from ncttt import InputError
from ncttt.training.start import start_digest, warm_start


def net(classes: int = 10, width: int = 4) -> torch.nn.Module:
    return ncttt.models.small(num_classes=classes, width=width)


def test_a_checkpoint_folder_gives_its_classifier(tmp_path):
    model, taken = tiny.model(), net()
    ncttt.save(model, tmp_path)
    assert warm_start(taken, tmp_path) == []
    assert tiny.same_weights(taken, model.classifier)


def test_a_checkpoint_of_a_network_of_ones_own_gives_it(tmp_path):
    def own(seed: int) -> torch.nn.Sequential:
        torch.manual_seed(seed)
        return torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.Flatten(), torch.nn.Linear(4 * 36, 10))

    source, taken = own(0), own(1)
    ncttt.save(ncttt.attach(source, "0", ncttt.NCTTT(), torch.rand(2, 3, 8, 8)), tmp_path)
    assert warm_start(taken, tmp_path) == []
    assert tiny.same_weights(taken, source)


def test_a_start_is_known_by_its_weights(tmp_path):
    ncttt.save(tiny.model(), tmp_path / "start")
    before = start_digest(tmp_path / "start")
    ncttt.save(tiny.model(), tmp_path / "start")
    assert start_digest(tmp_path / "start") == before
    ncttt.save(tiny.model(seed=1), tmp_path / "start")
    assert start_digest(tmp_path / "start") != before
    (tmp_path / "weights.pth").write_bytes(b"some")
    assert start_digest(tmp_path / "weights.pth") != start_digest(tmp_path / "start")
    assert start_digest(tmp_path / "none") is None


@pytest.mark.parametrize("kind", ["pth", "safetensors", "checkpoint"])
def test_a_file_of_weights(tmp_path, kind):
    source, taken = net(), net()
    path = tmp_path / f"weights.{kind}"
    if kind == "safetensors":
        save_file(source.state_dict(), path)
    elif kind == "pth":
        torch.save(source.state_dict(), path)
    else:  # as training scripts write it: inside a dict, from a data-parallel module
        torch.save({"epoch": 3, "state_dict": {f"module.{k}": v for k, v in source.state_dict().items()}}, path)
    assert warm_start(taken, path) == []
    assert tiny.same_weights(taken, source)


def test_a_last_layer_of_other_classes_stays_fresh(tmp_path):
    source, taken = net(classes=1000), net(classes=10)
    before = taken.fc.weight.detach().clone()
    torch.save(source.state_dict(), tmp_path / "imagenet.pth")
    assert warm_start(taken, tmp_path / "imagenet.pth") == ["fc.weight", "fc.bias"]
    assert torch.equal(taken.fc.weight, before)
    assert torch.equal(taken.layer1[0].weight, source.layer1[0].weight)


def test_another_architecture_is_refused(tmp_path):
    torch.save(net(width=8).state_dict(), tmp_path / "wide.pth")
    with pytest.raises(InputError, match=r"wide\.pth is of another architecture: .* in the network"):
        warm_start(net(), tmp_path / "wide.pth")


class Evil:
    def __reduce__(self):
        return (open, ("evil-was-here", "w"))


def test_a_pickle_is_not_executed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evil.pth").write_bytes(pickle.dumps(Evil()))
    torch.save({"fc.weight": Evil()}, tmp_path / "torch.pth")
    for name in ("evil.pth", "torch.pth"):
        with pytest.raises(InputError, match="no file of weights"):
            warm_start(net(), tmp_path / name)
    assert not (tmp_path / "evil-was-here").exists()


def test_what_is_not_there_is_named():
    with pytest.raises(InputError, match=r"nothing to start from: weights/none\.pth does not exist"):
        warm_start(net(), "weights/none.pth")
    with pytest.raises(InputError, match="no folder 'cifar11-small' and no model of that name in the zoo"):
        warm_start(net(), "cifar11-small")
