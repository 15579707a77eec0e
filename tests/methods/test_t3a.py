"""T3A: against lists that are sorted and cut, where its classes come from, and bad input."""

import pytest
import torch
from torch import Tensor, nn

import ncttt
import stream_checks
from ncttt import InputError
from ncttt.methods.settings import method_from, settings_of
from ncttt.methods.t3a import Kept, Supports
from ncttt.testing.cases import CLASSES, attached, images, resnet
from stream_checks import BATCHES, confident


@pytest.mark.parametrize("architecture", ["resnet", "vgg", "branching", "vit"])
@pytest.mark.parametrize("k", [1, 3, 100])
def test_it_equals_sorted_lists(architecture, k):
    stream_checks.check_t3a_equals_a_slow_one(architecture, k)


def test_the_best_are_kept_by_hand():
    """Two classes, one place each: the second image is more certain than the row of its class, the others less."""
    linear = nn.Linear(2, 2)
    with torch.no_grad():
        linear.weight.copy_(torch.eye(2))
        linear.bias.zero_()
    supports = Supports(linear, k=1)
    assert torch.equal(supports.features, torch.eye(2)[:, None])
    features = torch.tensor([[3.0, 3.5], [5.0, 0.0], [0.5, 0.0]])
    kept = Kept(supports.features, supports.entropies).with_others(features, features)
    torch.testing.assert_close(kept.features, torch.tensor([[[1.0, 0.0]], [[0.0, 1.0]]]))
    assert kept.entropies[0, 0] < supports.entropies[0, 0]
    assert kept.entropies[1, 0] == supports.entropies[1, 0]
    more = kept.with_others(torch.tensor([[1.0, 7.0]]), torch.tensor([[1.0, 7.0]]))
    torch.testing.assert_close(more.features[1, 0], torch.tensor([1.0, 7.0]) / 50**0.5)


def test_a_class_without_supports_has_a_logit_of_nothing():
    kept = Kept(torch.zeros(2, 3, 2), torch.full((2, 3), torch.inf))
    kept = kept.with_others(torch.tensor([[2.0, 0.0]]), torch.tensor([[1.0, 0.0]]))
    torch.testing.assert_close(kept.logits(torch.tensor([[3.0, 4.0]])), torch.tensor([[3.0, 0.0]]))


def test_the_order_of_images_in_the_first_batch_does_not_matter():
    model = confident(ncttt.T3A(k=3))
    batch = BATCHES[0].double()
    torch.testing.assert_close(ncttt.Adapter(model)(batch.flip(0)).flip(0), ncttt.Adapter(model)(batch))


def test_the_network_runs_once_and_stays_as_it_is():
    adapter = ncttt.Adapter(resnet(), ncttt.T3A(), protocol="online")
    count = []
    adapter.model.classifier.register_forward_hook(lambda *_: count.append(1))
    adapter(images(4))
    assert len(count) == 1
    assert (adapter.trace.stopped, adapter.trace.steps) == ("remembered", 0)


def test_the_supports_end_with_their_domain():
    stream_checks.check_domains_are_independent(ncttt.T3A())


class Backwards(nn.Module):
    """The layer that gives the logits is defined before another one."""

    def __init__(self) -> None:
        super().__init__()
        self.last = nn.Linear(4, CLASSES)
        self.first = nn.Linear(3, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.first(x.mean((2, 3))).relu())


def test_the_layer_that_gives_the_logits_is_the_last_that_runs():
    with pytest.raises(InputError, match=r"the last linear layer that Backwards defines.*ncttt.attach\(net, None"):
        ncttt.Adapter(Backwards(), ncttt.T3A())(images(4))
    model = ncttt.attach(Backwards(), None, ncttt.T3A(), images(2))
    assert ncttt.Adapter(model)(images(4)).shape == (4, CLASSES)


def test_a_network_without_a_linear_layer_is_one_line():
    net = nn.Sequential(nn.Conv2d(3, CLASSES, 16), nn.Flatten())
    with pytest.raises(
        InputError, match="T3A looks at the linear layer that gives the logits; found none in Sequential"
    ):
        ncttt.Adapter(net, ncttt.T3A())
    with pytest.raises(InputError, match="found none that runs in Sequential"):
        ncttt.Adapter(ncttt.attach(net, None, ncttt.T3A(), images(2)))


@pytest.mark.parametrize("k", [0, -1, 1.5, True])
def test_k_is_a_number_of_supports(k):
    with pytest.raises(InputError, match="k must be a whole number of at least 1; found"):
        ncttt.T3A(k=k)


def test_settings_are_saved_and_a_model_is_for_any_method():
    assert method_from(settings_of(ncttt.T3A(k=7))) == ncttt.T3A(k=7)
    assert ncttt.Adapter(attached("resnet", ncttt.Tent()), ncttt.T3A())(images(4)).isfinite().all()
