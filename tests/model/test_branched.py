"""Taps and the branched model: prefix and full passes agree on any kind of network, and traps are named."""

import copy

import pytest
import torch
from torch import nn

import ncttt
from ncttt import InputError
from ncttt.model.norm import statistics
from ncttt.testing.cases import (
    CLASSES,
    CLASSIFIERS,
    Branching,
    ViT,
    assert_same,
    attached,
    fingerprint,
    images,
    resnet,
    vgg,
)


def runs_of(module: nn.Module) -> dict[str, int]:
    """How often every named part of a module runs from now on."""
    counts: dict[str, int] = {}
    for name, part in module.named_modules():
        part.register_forward_hook(lambda m, i, o, name=name: counts.update({name: counts.get(name, 0) + 1}))
    return counts


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_prefix_and_full_pass_give_equal_features_and_gradients(name):
    model = attached(name, ncttt.NCTTT()).double()
    batch = images(4).double()
    grads = []
    for run in (model.features, lambda x: model.forward_with_features(x)[1]):
        model.zero_grad()
        with statistics(model.batch_norms(), "batch" if model.batch_norms() else "source"):
            features = run(batch)
        features.square().mean().backward()
        grads.append(
            (features.detach(), {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None})
        )
    (prefix, from_prefix), (full, from_full) = grads
    torch.testing.assert_close(prefix, full, rtol=1e-12, atol=0)
    assert from_prefix.keys() == from_full.keys()
    for parameter, gradient in from_prefix.items():
        torch.testing.assert_close(gradient, from_full[parameter], rtol=1e-6, atol=1e-15)


def test_the_prefix_runs_nothing_after_the_tap_and_leaves_later_statistics_alone():
    model = attached("resnet", ncttt.NCTTT(), layer="layer2").train()
    before = copy.deepcopy(model.classifier.layer3.state_dict())
    counts = runs_of(model.classifier)
    model.features(images(4))
    assert counts["layer1"] == 1
    assert not {name for name in counts if name.startswith(("layer3", "layer4", "fc"))}
    for name, tensor in model.classifier.layer3.state_dict().items():
        assert torch.equal(tensor, before[name])


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_forward_is_the_classifier_on_normalised_images(name):
    model = attached(name, ncttt.NCTTT())
    batch = images(4)
    normalised = (batch - torch.tensor([0.5, 0.4, 0.3])[:, None, None]) / 0.2
    output = model.classifier(normalised)
    expected = output["logits"] if isinstance(output, dict) else output[0] if isinstance(output, tuple) else output
    torch.testing.assert_close(model(batch), expected)
    logits, features = model.forward_with_features(batch)
    assert torch.equal(logits, model(batch))
    assert torch.equal(features, model.features(batch))


def test_the_classifier_keeps_its_keys_and_is_wrapped_not_copied():
    net = resnet()
    keys = set(net.state_dict())
    model = ncttt.attach(net, layer="layer2", method=ncttt.NCTTT(), example=images(2))
    assert model.classifier is net
    assert set(net.state_dict()) == keys
    assert {f"classifier.{key}" for key in keys} < set(model.state_dict())


@pytest.mark.parametrize("make", [resnet, vgg, Branching, ViT])
def test_attach_leaves_the_classifier_as_it_was(make):
    net = make().train()
    net.register_buffer("mark", torch.ones(1))
    before = fingerprint(net)
    layer = next(tap for maker, tap in CLASSIFIERS.values() if maker is make)
    ncttt.attach(net, layer, ncttt.NCTTT(), images(2))
    assert_same(before, fingerprint(net))


def test_encoder_parameters_are_those_the_features_depend_on():
    model = attached("branching", ncttt.NCTTT(), layer="body")
    assert set(model.encoder_parameters()) == {
        "stem.weight",
        "stem.bias",
        *(f"body.{n}" for n, _ in Branching().body.named_parameters()),
    }
    assert set(model.encoder_parameters("stem")) == {"stem.weight", "stem.bias"}
    resnet_model = attached("resnet", ncttt.NCTTT(), layer="layer2")
    expected = {n for n, _ in resnet().named_parameters() if n.startswith(("layer1", "layer2"))}
    assert set(resnet_model.encoder_parameters()) == expected
    vit = attached("vit", ncttt.NCTTT())
    assert "position" in vit.encoder_parameters()
    assert not any(name.startswith(("block2", "norm", "head")) for name in vit.encoder_parameters())


def test_encoder_parameters_are_found_in_a_frozen_network():
    net = resnet().requires_grad_(False)
    model = ncttt.attach(net, "layer1", ncttt.NCTTT(), images(2))
    assert "layer1.0.weight" in model.encoder_parameters()
    assert not any(p.requires_grad for p in net.parameters())


def test_several_layers_come_as_a_tuple_in_the_order_asked():
    net = resnet()
    model = ncttt.attach(net, ("layer3", "layer1"), ncttt.NCTTT(), images(2))
    counts = runs_of(net)
    third, first = model.features(images(4))
    assert third.shape[1:] == (16, 4, 4)
    assert first.shape[1:] == (4, 16, 16)
    assert "layer4" not in counts
    assert ncttt.Adapter(model)(images(4)).isfinite().all()


@pytest.mark.parametrize(
    ("layer", "shape"),
    [("layer3", (16, 4, 4)), ("maxpool", (32, 1, 1)), ("layer2.1.block1.0", (8, 8, 8)), ("fc", (CLASSES,))],
)
def test_any_layer_can_be_tapped(layer, shape):
    model = attached("resnet", ncttt.NCTTT(), layer=layer)
    assert model.features(images(3)).shape == (3, *shape)
    assert ncttt.Adapter(model, steps=1)(images(3)).isfinite().all()


def test_detached_tail_builds_no_graph_behind_the_tap():
    model = attached("resnet", ncttt.NCTTT()).requires_grad_(False)
    model.classifier.layer1[0].requires_grad_(True)
    logits, features = model.forward_with_features(images(2), detach=True)
    assert features.requires_grad
    assert not logits.requires_grad


def test_unknown_layers_are_named_with_their_neighbours():
    with pytest.raises(InputError, match=r"no layer 'layr2' in ResNet9; did you mean 'layer2'"):
        ncttt.attach(resnet(), "layr2", ncttt.NCTTT(), images(2))


def test_a_layer_that_never_runs_is_an_error():
    with pytest.raises(InputError, match="'unused' never runs"):
        ncttt.attach(Branching(), "unused", ncttt.NCTTT(), images(2))


def test_an_output_changed_in_place_is_an_error_and_leaves_no_hook():
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(4 * 14 * 14, CLASSES))
    with pytest.raises(InputError, match="'0' is changed in place"):
        ncttt.attach(net, "0", ncttt.NCTTT(), images(2))
    assert not net[0]._forward_hooks
    ncttt.attach(net, "1", ncttt.NCTTT(), images(2))


def test_an_output_that_is_no_tensor_is_an_error():
    class Pair(nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return x, x

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.pair, self.fc = Pair(), nn.Linear(3, CLASSES)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.fc(self.pair(x)[0].mean((2, 3)))

    with pytest.raises(InputError, match="'pair' gives a tuple, not a tensor"):
        ncttt.attach(Net(), "pair", ncttt.NCTTT(), images(2))


def test_outputs_without_logits_are_an_error():
    with pytest.raises(InputError, match=r"expected logits .* shape \(2, 4, 16, 16\)"):
        ncttt.attach(nn.Sequential(nn.Conv2d(3, 4, 1)), "0", ncttt.NCTTT(), images(2))


@pytest.mark.parametrize(
    ("mean", "std"), [((0.5,), (0.0,)), ((float("nan"),), (1.0,)), ((), (1.0,)), ((125.0,), (60.0,)), ((0.5,), None)]
)
def test_bad_normalisation_is_an_error(mean, std):
    with pytest.raises(InputError, match=r"mean|std"):
        ncttt.attach(resnet(), "layer1", ncttt.NCTTT(), images(2), mean=mean, std=std)


def test_a_layer_with_two_names_is_found_under_both():
    class Aliased(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3)
            self.features = nn.Sequential(self.conv, nn.ReLU())
            self.fc = nn.Linear(4, CLASSES)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.fc(self.features(x).mean((2, 3)))

    for name in ("conv", "features.0"):
        assert ncttt.attach(Aliased(), name, ncttt.NCTTT(), images(2)).features(images(2)).shape[1] == 4


@pytest.mark.filterwarnings("ignore:.*deprecated:DeprecationWarning")
def test_wrapped_classifiers_are_named():
    for wrapped, message in [
        (nn.DataParallel(resnet()), r"net\.module"),
        (torch.compile(resnet()), r"net\._orig_mod"),
        (torch.jit.trace(vgg().eval(), images(2)), "scripted or traced"),
    ]:
        with pytest.raises(InputError, match=message):
            ncttt.attach(wrapped, "layer1", ncttt.NCTTT(), images(2))


@pytest.mark.parametrize("layer", [7, ("layer1", "layer1"), ""])
def test_layers_that_make_no_sense_are_refused(layer):
    with pytest.raises(InputError, match="layer"):
        ncttt.attach(resnet(), layer, ncttt.NCTTT(), images(2))


def test_a_method_class_is_no_method():
    with pytest.raises(InputError, match=r"such as NCTTT\(\)"):
        ncttt.attach(resnet(), "layer1", ncttt.NCTTT, images(2))


def test_what_cannot_move_is_said_before_the_training():
    with pytest.raises(InputError, match="no layer 'stem'"):
        ncttt.attach(resnet(), "layer2", ncttt.NCTTT(moves="stem"), images(2))
