"""ETA, EATA and RDumb: against slow streams, torch-ttt where it is right, and hand-computed cases."""

import copy
import math

import pytest
import torch
from test_peers import peer_engine
from torch import nn

import ncttt
import stream_checks
from ncttt import InputError
from ncttt.methods.eata import FISHER_BATCH, MeanPrediction, _groups
from ncttt.methods.settings import method_from, settings_of
from ncttt.testing.cases import images, resnet
from stream_checks import BATCHES, confident, slow_eta, slow_fisher, stream


def test_eta_equals_a_slow_stream():
    stream_checks.check_eta_equals_a_slow_one()


@pytest.mark.parametrize("architecture", ["vgg", "vit"])
def test_eta_equals_a_slow_stream_on_other_networks(architecture):
    model = confident(ncttt.ETA(redundancy=0.6, norm="batch" if architecture == "vgg" else "source"), architecture)
    expected = torch.cat([logits for logits, *_ in slow_eta(model, 0.4, 0.6, lr=1e-2)])
    torch.testing.assert_close(stream(model, lr=1e-2), expected)


def test_eata_equals_a_slow_stream_with_its_anchor():
    model = confident(ncttt.EATA(redundancy=0.6, alpha=1.0))
    fisher = slow_fisher(model, images(40, seed=9))
    torch.testing.assert_close(model.branch.diagonal, torch.cat([part.flatten() for part in fisher]))
    for alpha in (1.0, 500.0):
        strong = [alpha * part for part in fisher]
        expected = torch.cat([logits for logits, *_ in slow_eta(model, 0.4, 0.6, 1e-2, strong)])
        ours = ncttt.EATA(redundancy=0.6, alpha=alpha)
        torch.testing.assert_close(stream(model, method=ours, lr=1e-2), expected)
    free = torch.cat([logits for logits, *_ in slow_eta(model, 0.4, 0.6, 1e-2)])
    assert not torch.allclose(free, expected, rtol=0, atol=1e-4)


def test_the_fisher_matrix_does_not_depend_on_how_the_images_are_batched():
    source = images(150, seed=3)
    torch.manual_seed(0)
    net = resnet().eval()
    diagonals = []
    for size in (150, 7, 64):
        model = ncttt.calibrated(net, ncttt.EATA(fisher_images=140), list(source.split(size)))
        diagonals.append(model.branch.diagonal)
    torch.testing.assert_close(diagonals[0], diagonals[1])
    torch.testing.assert_close(diagonals[0], diagonals[2])
    assert [len(group) for group in _groups([source], 140)] == [FISHER_BATCH, FISHER_BATCH, 12]


def test_a_frozen_network_is_calibrated_and_left_as_it_is():
    net = resnet().requires_grad_(False).eval()
    before = copy.deepcopy(net.state_dict())
    model = ncttt.calibrated(net, ncttt.EATA(), [images(8)])
    assert model.branch.diagonal.max() > 0
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    assert not any(parameter.requires_grad or parameter.grad is not None for parameter in net.parameters())
    model.forget()
    with pytest.raises(InputError, match="EATA needs the Fisher matrix of the source"):
        ncttt.Adapter(model)


def test_filters_and_weights_by_hand():
    """Two classes, entropies on both sides of 0.4 ln 2, and one prediction like the mean of those before."""

    class Given(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.GroupNorm(1, 2)
            self.head = nn.Linear(2, 2)  # tells how many classes there are

        def forward(self, x):
            return x.mean((2, 3))[:, :2] + 0 * self.norm(x[:, :2]).mean((2, 3))

    def batch(*margins: float) -> torch.Tensor:
        rows = [torch.tensor([margin / 2, -margin / 2, 0.0]) for margin in margins]
        return torch.stack(rows)[:, :, None, None].expand(-1, -1, 4, 4).contiguous()

    def h(margin: float) -> float:
        p = 1 / (1 + math.exp(-margin))
        return -p * math.log(p) - (1 - p) * math.log(1 - p)

    limit = 0.4 * math.log(2)
    assert h(3.0) < limit < h(2.0)
    adapter = ncttt.Adapter(Given(), ncttt.ETA(norm="source"), protocol="online")
    adapter(batch(3.0, 2.0, 4.0))
    expected = sum(math.exp(limit - h(margin)) * h(margin) for margin in (3.0, 4.0)) / 2
    assert adapter.trace.losses[0] == pytest.approx(expected, abs=1e-5)
    adapter(batch(5.0, -3.0))  # the first is like the mean, the second is not
    assert adapter.trace.losses[0] == pytest.approx(math.exp(limit - h(3.0)) * h(3.0), abs=1e-5)
    adapter(batch(1.0))
    assert (adapter.trace.stopped, adapter.trace.steps) == ("nothing to learn", 0)


def test_the_moving_mean():
    memory = MeanPrediction(2)
    memory.move(torch.tensor([[0.8, 0.2], [0.6, 0.4]]))
    torch.testing.assert_close(memory.mean, torch.tensor([0.7, 0.3]))
    memory.move(torch.tensor([[0.2, 0.8]]))
    torch.testing.assert_close(memory.mean, torch.tensor([0.65, 0.35]))


def test_torch_ttt_goes_the_same_way():
    """Its margin is made for 1000 classes and its Fisher matrix raises, so both are given by hand."""
    pytest.importorskip("torch_ttt")
    model = confident(ncttt.EATA(redundancy=0.6))
    net = stream_checks.plain_network(model)
    engine = peer_engine("eata")(net, None, 0.4 * math.log(5), 0.6, fisher_alpha=1.0).train()
    moving = {name: parameter for name, parameter in net.named_parameters() if parameter.requires_grad}
    fisher = slow_fisher(model, images(40, seed=9))
    engine.fishers = {name: (part, p.detach().clone()) for (name, p), part in zip(moving.items(), fisher, strict=True)}
    optimizer = torch.optim.Adam(moving.values(), lr=1e-2)
    adapter = ncttt.Adapter(model, protocol="online", lr=1e-2)
    for batch in BATCHES:
        logits, loss = engine(stream_checks.normalised(batch))
        torch.testing.assert_close(adapter(batch.double()), logits.detach())
        assert adapter.trace.losses[0] == pytest.approx(loss.item(), abs=1e-8)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@pytest.mark.parametrize("returns", ["before", "after"])
def test_how_often_the_classifier_runs(returns):
    adapter = ncttt.Adapter(resnet(), ncttt.ETA(returns=returns, margin=1.0))
    count = []
    adapter.model.classifier.register_forward_hook(lambda *_: count.append(1))
    adapter(images(4))
    assert len(count) == (1 if returns == "before" else 2)


def test_the_memory_ends_with_its_domain():
    stream_checks.check_domains_are_independent(ncttt.ETA(redundancy=0.6))


def test_rdumb_is_eta_that_begins_again():
    rdumb, eta = (confident(kind(margin=1.0, redundancy=0.69)) for kind in (ncttt.RDumb, ncttt.ETA))
    method = ncttt.RDumb(margin=1.0, redundancy=0.69, every=2)
    adapter = ncttt.Adapter(rdumb, method, protocol="continual", lr=1e-2)
    pieces = [BATCHES[:2], BATCHES[2:4], BATCHES[4:]]
    expected = torch.cat([stream(eta, piece, lr=1e-2) for piece in pieces])
    rows, resets = [], []
    for batch in BATCHES:
        rows.append(adapter(batch.double()))
        resets.append(adapter.trace.reset)
    torch.testing.assert_close(torch.cat(rows), expected, rtol=0, atol=0)
    assert resets == [False, True, False, True, False]


def test_rdumb_counts_batches_that_taught_nothing():
    adapter = ncttt.Adapter(resnet(), ncttt.RDumb(margin=0.0, every=2), protocol="online")
    resets = []
    for batch in BATCHES[:4]:
        adapter(batch)
        resets.append(adapter.trace.reset)
    assert resets == [False, True, False, True]


def test_a_plain_network_and_those_that_cannot_be():
    assert ncttt.Adapter(resnet(), ncttt.ETA())(images(4)).isfinite().all()
    with pytest.raises(
        InputError, match=r"EATA needs the Fisher matrix of the source.*ncttt.calibrated\(net, EATA\(\)"
    ):
        ncttt.Adapter(resnet(), ncttt.EATA())
    with pytest.raises(InputError, match="ETA moves scale and shift of normalisation layers; found none in Sequential"):
        ncttt.Adapter(nn.Sequential(nn.Flatten(), nn.Linear(768, 5)), ncttt.ETA())
    with pytest.raises(InputError, match="ETA must know the number of classes, which a plain Sequential"):
        ncttt.Adapter(nn.Sequential(nn.Conv2d(3, 5, 16), nn.GroupNorm(1, 5), nn.Flatten()), ncttt.ETA())
    with pytest.raises(InputError, match="built with another fisher_images"):
        ncttt.Adapter(ncttt.calibrated(resnet(), ncttt.EATA(), [images(4)]), ncttt.EATA(fisher_images=10))


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        (ncttt.ETA, {"margin": -0.1}, "margin must be a finite number of at least 0; found -0.1"),
        (ncttt.ETA, {"redundancy": math.nan}, "redundancy must be a finite number"),
        (ncttt.ETA, {"returns": "during"}, "returns must be one of after, before"),
        (ncttt.EATA, {"alpha": -1}, "alpha must be a finite number of at least 0"),
        (ncttt.EATA, {"fisher_images": 0}, "fisher_images must be a whole number of at least 1"),
        (ncttt.RDumb, {"every": 0}, "every must be a whole number of at least 1; found 0"),
        (ncttt.RDumb, {"every": 1.5}, "every must be a whole number"),
    ],
)
def test_settings_are_checked(kind, settings, message):
    with pytest.raises(InputError, match=message):
        kind(**settings)


@pytest.mark.parametrize("method", [ncttt.ETA(margin=0.3), ncttt.EATA(alpha=2.0), ncttt.RDumb(every=7)])
def test_settings_are_saved(method):
    assert method_from(settings_of(method)) == method


def test_a_calibrated_model_is_saved_and_loaded(tmp_path):
    model = ncttt.calibrated(ncttt.models.small(num_classes=5, width=4), ncttt.EATA(), [images(6)])
    ncttt.save(model, tmp_path)
    again = ncttt.load(tmp_path)
    assert torch.equal(again.branch.diagonal, model.branch.diagonal)
    assert torch.equal(ncttt.Adapter(again)(images(4)), ncttt.Adapter(model)(images(4)))
