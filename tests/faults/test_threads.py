"""One adapter and several threads; a batch that fails can come again."""

import copy
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import ncttt
from ncttt.testing.cases import attached, images, resnet


def stream() -> ncttt.Adapter:
    torch.manual_seed(0)
    net = resnet()
    return ncttt.Adapter(net, ncttt.Tent(steps=2, lr=1e-2), protocol="online")


@pytest.mark.parametrize("threads", [2, 4])
def test_threads_that_share_an_adapter_take_turns(threads):
    """The same batch eight times: whoever comes first, the answers are those of a stream in one thread."""
    alone, shared, batch = stream(), stream(), images(64)
    expected = [alone(batch) for _ in range(8)]
    with ThreadPoolExecutor(threads) as pool:
        logits = list(pool.map(lambda _: shared(batch), range(8)))
    for one in logits:
        assert any(torch.allclose(one, other, atol=1e-5) for other in expected)
    for one in expected:
        assert any(torch.allclose(one, other, atol=1e-5) for other in logits)


@pytest.mark.sound
def test_an_adapter_is_copied_with_a_lock_of_its_own():
    adapter = stream()
    other = copy.deepcopy(adapter)
    assert other._turn is not adapter._turn
    torch.testing.assert_close(adapter(images(64)), other(images(64)))


def test_a_batch_that_failed_can_come_again(monkeypatch):
    method = ncttt.NCTTT(copies=4, steps=1, lr=1e-2)
    model = attached("resnet", method)
    good, bad = (ncttt.Adapter(model, protocol="online") for _ in range(2))
    whole = type(method).adaptation_loss

    def fails(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(type(method), "adaptation_loss", fails)
    with pytest.raises(KeyboardInterrupt):
        bad(images(64))
    monkeypatch.setattr(type(method), "adaptation_loss", whole)
    for seed in range(3):
        assert torch.equal(good(images(64, seed)), bad(images(64, seed)))


METHODS = {
    "nc_ttt": ncttt.NCTTT(copies=4, steps=2, lr=1e-2),
    "ttt_plus": ncttt.TTTPlus(steps=2, lr=1e-2, queue=16, feature_weight=0, projection_weight=0),
    "ttt": ncttt.TTT(rotations="one", steps=2, lr=1e-2),
    "tent": ncttt.Tent(steps=2, lr=1e-2),
    "deyo": ncttt.DeYO(steps=2, lr=1e-2, margin=1.0, least_drop=-1.0),
    "roid": ncttt.ROID(steps=2, lr=1e-2),
    "memo": ncttt.MEMO(steps=2, lr=1e-2, views=2),
    "cotta": ncttt.CoTTA(steps=2, lr=1e-2, views=2),
    "rotta": ncttt.RoTTA(steps=2, lr=1e-2, capacity=16, every=16),
    "note": ncttt.NOTE(steps=2, lr=1e-2, capacity=16, every=16),
    "actmad": ncttt.ActMAD(steps=2, lr=1e-2),
}


def logits_of(adapter: ncttt.Adapter, batches: int = 4) -> torch.Tensor:
    return torch.stack([adapter(images(32, seed)) for seed in range(batches)])


@pytest.mark.parametrize("threads", [2, 4])
@pytest.mark.parametrize("protocol", ["episodic", "online"])
@pytest.mark.parametrize("name", METHODS)
def test_adapters_of_several_threads_do_not_disturb_one_another(name, protocol, threads):
    model = attached("resnet", METHODS[name])
    model.calibrate([images(32, seed=9)])
    made = lambda seed: ncttt.Adapter(model, protocol=protocol, seed=seed)  # noqa: E731
    expected = [logits_of(made(seed)) for seed in range(threads)]
    torch.manual_seed(5)
    before, flags = torch.get_rng_state(), [part.requires_grad for part in model.parameters()]
    with ThreadPoolExecutor(threads) as pool:
        found = list(pool.map(lambda seed: logits_of(made(seed)), range(threads)))
        modes = set(pool.map(lambda _: (torch.is_grad_enabled(), torch.is_inference_mode_enabled()), range(threads)))
    assert all(torch.equal(*pair) for pair in zip(found, expected, strict=True))
    assert torch.equal(torch.get_rng_state(), before)
    assert [part.requires_grad for part in model.parameters()] == flags
    assert modes == {(True, False)}
    assert torch.is_grad_enabled()


def test_the_numbers_of_a_thread_that_trains_are_its_own():
    """After its first batch an adapter leaves the global generator alone, while it adapts as well."""
    adapter = ncttt.Adapter(attached("resnet", METHODS["nc_ttt"]))
    adapter(images(32))
    drawn, whole = [], type(adapter.method).adaptation_loss

    def watch(*args):
        drawn.append(torch.get_rng_state())
        return whole(*args)

    torch.manual_seed(5)
    before = torch.get_rng_state()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ncttt.NCTTT, "adaptation_loss", watch)
        adapter(images(32))
    assert len(drawn) == 2
    assert all(torch.equal(state, before) for state in drawn)


class Noisy(nn.Module):
    """A network that draws from the global generator in evaluation mode, too."""

    def __init__(self) -> None:
        super().__init__()
        self.net = resnet()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(F.dropout(x, 0.5, training=True))


@pytest.mark.parametrize("threads", [1, 3])
def test_a_network_that_draws_random_numbers_repeats_as_well(threads):
    torch.manual_seed(0)
    net = Noisy()
    made = lambda _: ncttt.Adapter(net, ncttt.Tent(steps=2), protocol="online")  # noqa: E731
    expected = logits_of(made(0))
    before = torch.get_rng_state()
    with ThreadPoolExecutor(threads) as pool:
        found = list(pool.map(lambda _: logits_of(made(0)), range(threads)))
    assert all(torch.equal(one, expected) for one in found)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("call", ["shift", "bake", "predict_at"])
def test_a_call_that_failed_leaves_the_stream_as_it_was(call, monkeypatch):
    method = ncttt.NCTTT(copies=4, steps=1, lr=1e-2)
    model = attached("resnet", method)
    good, bad = (ncttt.Adapter(model, protocol="online") for _ in range(2))
    for one in (good, bad):
        one(images(32))

    def fails(*args, **settings):
        raise KeyboardInterrupt

    monkeypatch.setattr(type(method), "score" if call == "shift" else "adaptation_loss", fails)
    with pytest.raises(KeyboardInterrupt):
        getattr(bad, call)(*([1],) if call == "predict_at" else (), images(32, 1))
    monkeypatch.undo()
    for seed in range(3):
        assert torch.equal(good(images(32, seed)), bad(images(32, seed)))
