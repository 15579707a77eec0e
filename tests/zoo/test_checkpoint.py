"""Checkpoints: bit-identical predictions after a round trip, and clear words about damaged or foreign ones."""

import json
import os
import resource
from pathlib import Path

import pytest
import torch
from torch import nn

import ncttt
from ncttt import InputError
from ncttt.noise import StudentT
from ncttt.testing.cases import CLASSES, Branching, attached, images, resnet


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("layer", ["layer2", ("layer1", "layer3")])
def test_a_loaded_model_predicts_bit_for_bit(tmp_path, channels_last, layer):
    method = ncttt.NCTTT(noise=StudentT(df=4), moves="layer1", norm=("batch", "source"), hidden=16)
    model = attached("resnet", method, layer=layer)
    method.calibrate(model, [images(8)])
    if channels_last:
        model = model.to(memory_format=torch.channels_last)
    ncttt.save(model, tmp_path / "new" / "folder")
    again = ncttt.load(tmp_path / "new" / "folder")
    assert again.method == method
    assert again.layer == layer
    assert torch.equal(again(images(5)), model(images(5)))
    assert torch.equal(ncttt.Adapter(again)(images(5)), ncttt.Adapter(model)(images(5)))
    for name, tensor in model.state_dict().items():
        assert torch.equal(again.state_dict()[name], tensor)


def test_saving_over_a_checkpoint_replaces_it(tmp_path):
    first, second = attached("resnet", ncttt.NCTTT()), attached("resnet", ncttt.NCTTT(), seed=1)
    ncttt.save(first, tmp_path)
    ncttt.save(second, tmp_path)
    assert torch.equal(ncttt.load(tmp_path)(images(2)), second(images(2)))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model.json", "model.safetensors"]


def test_a_users_own_network_is_passed_in(tmp_path):
    model = attached("branching", ncttt.NCTTT())
    ncttt.save(model, tmp_path)
    with pytest.raises(InputError, match="load\\(folder, classifier=net\\)"):
        ncttt.load(tmp_path)
    assert torch.equal(ncttt.load(tmp_path, Branching())(images(3)), model(images(3)))


def test_tied_weights_survive(tmp_path):
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Conv2d(3, 3, 1), nn.Conv2d(3, 3, 1)
            self.second.weight = self.first.weight
            self.fc = nn.Linear(3, CLASSES)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.fc(self.second(self.first(x).relu()).mean((2, 3)))

    model = ncttt.attach(Tied(), "first", ncttt.NCTTT(), images(2))
    ncttt.save(model, tmp_path)
    assert torch.equal(ncttt.load(tmp_path, Tied())(images(3)), model(images(3)))


def test_the_description_is_plain_json(tmp_path):
    ncttt.save(attached("resnet", ncttt.NCTTT()), tmp_path)
    described = json.loads((tmp_path / "model.json").read_text())
    assert described["architecture"] == {"name": "small", "num_classes": CLASSES, "width": 4, "growth": [1, 2, 4, 8]}
    assert described["method"]["name"] == "nc_ttt"
    assert described["preprocessing"]["mean"] == pytest.approx([0.5, 0.4, 0.3])


def test_missing_damaged_and_foreign_checkpoints_are_named(tmp_path):
    with pytest.raises(InputError, match=r"model\.json is missing"):
        ncttt.load(tmp_path / "nowhere")
    ncttt.save(attached("resnet", ncttt.NCTTT()), tmp_path)
    with pytest.raises(InputError, match="another architecture"):
        ncttt.load(tmp_path, ncttt.models.small(num_classes=CLASSES, width=8))
    weights = tmp_path / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="damaged"):
        ncttt.load(tmp_path)
    weights.unlink()
    with pytest.raises(InputError, match="safetensors is missing"):
        ncttt.load(tmp_path)
    (tmp_path / "model.json").write_text('{"format": 99}')
    with pytest.raises(InputError, match="format 1"):
        ncttt.load(tmp_path)
    (tmp_path / "model.json").write_text("{")
    with pytest.raises(InputError, match="not valid JSON"):
        ncttt.load(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "nc_tt"}, "did you mean 'nc_ttt'"),
        ({"sigma": 1}, "no setting 'sigma'"),
    ],
)
def test_unknown_methods_and_settings_are_named(tmp_path, change, message):
    ncttt.save(attached("resnet", ncttt.NCTTT()), tmp_path)
    path = tmp_path / "model.json"
    described = json.loads(path.read_text())
    described["method"] |= change
    path.write_text(json.dumps(described))
    with pytest.raises(InputError, match=message):
        ncttt.load(tmp_path)


@pytest.mark.parametrize("largest", [20_000, 400])
def test_a_full_disk_leaves_the_old_checkpoint_whole(tmp_path, largest):
    """Files cannot grow beyond a limit: what a full disk does, to the weights or already to the description."""
    model = attached("resnet", ncttt.NCTTT())
    ncttt.save(model, tmp_path)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            ncttt.save(attached("resnet", ncttt.NCTTT(), seed=1), tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert torch.equal(ncttt.load(tmp_path)(images(2)), model(images(2)))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model.json", "model.safetensors"]


def test_only_branched_models_are_saved(tmp_path):
    with pytest.raises(InputError, match=r"ncttt\.attach"):
        ncttt.save(resnet(), tmp_path)


def test_a_changed_network_is_its_authors_own(tmp_path):
    model = attached("resnet", ncttt.NCTTT())
    model.classifier.maxpool = nn.AdaptiveAvgPool2d(1)
    ncttt.save(model, tmp_path)
    with pytest.raises(InputError, match="author's own"):
        ncttt.load(tmp_path)
    net = resnet()
    net.architecture = "my own idea"
    ncttt.save(ncttt.attach(net, "layer1", ncttt.NCTTT(), images(2)), tmp_path)
    with pytest.raises(InputError, match="author's own"):
        ncttt.load(tmp_path)


def test_precision_and_the_callers_random_numbers_are_kept(tmp_path):
    model = attached("resnet", ncttt.NCTTT()).double()
    ncttt.save(model, tmp_path)
    state = torch.get_rng_state()
    again = ncttt.load(tmp_path)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(again(images(2).double()), model(images(2).double()))


def test_a_users_own_method_is_not_saved_as_another(tmp_path):
    class Mine(ncttt.NCTTT):
        pass

    good = attached("resnet", ncttt.NCTTT())
    ncttt.save(good, tmp_path)
    with pytest.raises(InputError, match="Mine has no address from which it could be loaded again"):
        ncttt.save(attached("resnet", Mine(), seed=1), tmp_path)
    assert torch.equal(ncttt.load(tmp_path)(images(2)), good(images(2))), "a refused save touched the old checkpoint"


def test_files_of_two_saves_are_told_apart(tmp_path):
    for seed in (0, 1):
        ncttt.save(attached("resnet", ncttt.NCTTT(), seed=seed), tmp_path / str(seed))
    (tmp_path / "1/model.safetensors").replace(tmp_path / "0/model.safetensors")
    with pytest.raises(InputError, match="not saved together"):
        ncttt.load(tmp_path / "0")


def test_a_model_loaded_under_inference_mode_can_learn(tmp_path):
    ncttt.save(attached("resnet", ncttt.NCTTT()), tmp_path)
    with torch.inference_mode():
        model = ncttt.load(tmp_path)
    assert not any(parameter.is_inference() for parameter in model.parameters())
    assert ncttt.Adapter(model, steps=1)(images(4)).isfinite().all()


def test_a_kill_between_the_two_renames_loses_nothing(tmp_path, monkeypatch):
    old, new = attached("resnet", ncttt.PTBN()), attached("resnet", ncttt.PTBN())
    nn.init.ones_(new.classifier.fc.bias)
    ncttt.save(old, tmp_path)

    class Killed(BaseException):
        pass

    renames = [os.replace]

    def rename(waiting, path):
        if not renames:
            raise Killed
        renames.pop()(waiting, path)

    monkeypatch.setattr(os, "replace", rename)
    monkeypatch.setattr(Path, "unlink", lambda path, missing_ok: None)  # nothing is tidied up after a kill
    with pytest.raises(Killed):
        ncttt.save(new, tmp_path)
    monkeypatch.undo()
    assert torch.equal(ncttt.load(tmp_path).classifier.fc.bias, new.classifier.fc.bias)
    ncttt.save(old, tmp_path)
    assert torch.equal(ncttt.load(tmp_path).classifier.fc.bias, old.classifier.fc.bias)


def plain_model() -> ncttt.Branched:
    return ncttt.attach(ncttt.models.small(width=4), "layer2", ncttt.Source(), torch.rand(2, 3, 32, 32))


def test_a_checkpoint_remembers_how_photographs_were_resized(tmp_path):
    model = plain_model()
    model.resize = "crop(40)"
    ncttt.save(model, tmp_path)
    assert ncttt.load(tmp_path).resize == "crop(40)"
    described = json.loads((tmp_path / "model.json").read_text())
    del described["resize"]  # as older ones are
    (tmp_path / "model.json").write_text(json.dumps(described))
    assert ncttt.load(tmp_path).resize == "square"


@pytest.mark.parametrize("resize", ["stretch", 5, None])
def test_an_unknown_way_of_resizing_names_the_file(tmp_path, resize):
    ncttt.save(plain_model(), tmp_path)
    described = json.loads((tmp_path / "model.json").read_text())
    (tmp_path / "model.json").write_text(json.dumps(described | {"resize": resize}))
    with pytest.raises(InputError, match=rf"model\.json: resize must be 'square', .* found {resize!r}"):
        ncttt.load(tmp_path)
