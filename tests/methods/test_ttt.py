"""TTT: rotations, the head that copies what follows the tap, what moves."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import ncttt
from branch_checks import check_rotation_labels
from ncttt.methods.ttt import PooledBody, rotate_all, rotate_each
from ncttt.methods.ttt.tail import copy_tail
from ncttt.testing.cases import CLASSIFIERS, attached, images

F_SHAPE = torch.tensor([[1.0, 1, 1], [1, 0, 0], [1, 1, 0], [1, 0, 0]])[:3]


def test_labels_match_the_turns():
    check_rotation_labels()


def test_rotations_by_eye():
    rotated, turns = rotate_all(F_SHAPE[None, None])
    assert turns.tolist() == [0, 1, 2, 3]
    assert rotated[0, 0].tolist() == [[1, 1, 1], [1, 0, 0], [1, 1, 0]]
    assert rotated[1, 0].tolist() == [[1, 0, 0], [1, 0, 1], [1, 1, 1]]
    assert rotated[2, 0].tolist() == [[0, 1, 1], [0, 0, 1], [1, 1, 1]]
    assert rotated[3, 0].tolist() == [[1, 1, 1], [1, 0, 1], [0, 0, 1]]


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_rotations_are_numpys_and_keep_the_layout(layout):
    batch = images(8).to(memory_format=layout)
    for rotated, turns in (rotate_all(batch), rotate_each(batch)):
        assert rotated.is_contiguous(memory_format=layout)
        for number, (image, count) in enumerate(zip(rotated, turns, strict=True)):
            expected = np.rot90(batch[number % 8].permute(1, 2, 0).numpy(), int(count))
            assert np.array_equal(image.permute(1, 2, 0).numpy(), expected)


def test_images_that_are_not_square():
    with pytest.raises(ncttt.InputError, match="square; found 16x12"):
        rotate_all(torch.rand(2, 3, 16, 12))


def copied(name: str, layer: str | None = None) -> tuple[nn.Module, nn.Module | None, Tensor, Tensor]:
    model = attached(name, ncttt.TTT(head="pooled"), layer=layer)
    logits, features = model.forward_with_features(images(5))
    return model.classifier, copy_tail(model.classifier, model.layers[0], features, logits), features, logits


@pytest.mark.parametrize(
    ("name", "layer", "last"),
    [("resnet", "layer2", "fc"), ("resnet", "layer1", "fc"), ("vgg", "7", "13"), ("vit", "block1", "head")],
)
def test_the_tail_makes_the_logits_of_the_features(name, layer, last):
    net, tail, features, logits = copied(name, layer)
    vectors = tail.eval()(features)
    assert torch.allclose(net.get_submodule(last)(vectors), logits, atol=1e-5)
    own = {id(p) for p in net.parameters()}
    assert not any(id(p) in own for p in tail.parameters()), "the tail shares parameters with the classifier"


def test_the_tail_holds_what_follows_the_tap_and_nothing_else():
    _, tail, _, _ = copied("resnet", "layer2")
    names = {name.split(".")[0] for name, _ in tail.named_parameters()}
    assert "layer3" in names
    assert not names & {"layer1", "layer2", "fc", "stem", "conv1"}


class Skipping(nn.Module):
    """Leads something past the tapped layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.tapped = nn.Conv2d(3, 8, 1), nn.Conv2d(8, 8, 1)
        self.last = nn.Linear(8, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        return self.last((x + self.tapped(x)).mean((2, 3)))


class Nested(nn.Module):
    """A tap deep inside, a value past it that is a constant, and no linear layer at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Conv2d(3, 8, 1), nn.ReLU(), nn.Conv2d(8, 5, 1))
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        maps = self.inner(x)
        return {"logits": self.scale * F.relu(maps).mean((2, 3)), "maps": maps}


def test_where_there_is_no_tail_the_features_are_pooled():
    for net, layer in ((Skipping(), "tapped"), (CLASSIFIERS["branching"][0](), "body")):
        model = ncttt.attach(net, layer, ncttt.TTT(), images(2))
        assert isinstance(model.branch.body, PooledBody)
        with pytest.raises(ncttt.InputError, match="head='tail' needs a forward"):
            ncttt.attach(net, layer, ncttt.TTT(head="tail"), images(2))


def test_a_tap_inside_a_module_and_a_network_without_a_last_linear_layer():
    net = Nested().requires_grad_(False)
    model = ncttt.attach(net, "inner.0", ncttt.TTT(head="tail"), images(2))
    logits, features = model.forward_with_features(images(4))
    assert torch.allclose(model.branch.body(features), logits, atol=1e-6)
    assert model.branch(features).shape == (4, 4)
    assert all(p.requires_grad for p in model.branch.parameters())


def test_a_second_layer_is_an_error():
    make, _ = CLASSIFIERS["resnet"]
    with pytest.raises(ncttt.InputError, match="follows one layer; found 2"):
        ncttt.attach(make(), ["layer1", "layer2"], ncttt.TTT(), images(2))


@pytest.mark.parametrize("rotations", ["one", "all"])
def test_training_leaves_running_statistics_to_the_classifier(rotations):
    method = ncttt.TTT(rotations=rotations)
    model = attached("resnet", method).train()
    logits, features = model.forward_with_features(images(8))
    before = {name: b.clone() for name, b in model.classifier.named_buffers()}
    method.training_loss(model, images(8), features, logits).backward()
    assert all(torch.equal(b, before[name]) for name, b in model.classifier.named_buffers())
    assert all(layer.training for layer in model.batch_norms())
    assert all(p.grad is not None for p in model.branch.parameters())


def test_the_head_moves_if_told_and_comes_back():
    adapter = ncttt.Adapter(attached("resnet", ncttt.TTT(moves_head=True)), lr=0.1, steps=2, protocol="online")
    before = {name: p.clone() for name, p in adapter.model.branch.named_parameters()}
    adapter(images(6))
    assert not any(torch.equal(p, before[name]) for name, p in adapter.model.branch.named_parameters() if p.ndim > 1)
    adapter.reset()
    assert all(torch.equal(p, before[name]) for name, p in adapter.model.branch.named_parameters())


def test_what_moves_can_be_chosen():
    model = attached("resnet", ncttt.TTT(moves="norm"))
    assert set(ncttt.TTT(moves="norm").parameters(model)) < set(ncttt.TTT().parameters(model))
    with pytest.raises(ncttt.InputError, match="lies after the tapped"):
        attached("resnet", ncttt.TTT(moves="layer3"))


def test_warnings():
    assert ncttt.TTT().warnings({"rotation_accuracy": 0.26})
    assert ncttt.TTT().warnings({"rotation_accuracy": 0.9}) == []


@pytest.mark.parametrize("wrong", [{"head": "tails"}, {"rotations": "two"}])
def test_wrong_settings(wrong):
    with pytest.raises(ncttt.InputError, match="must be one of"):
        ncttt.TTT(**wrong)
