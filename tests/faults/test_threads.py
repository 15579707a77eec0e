"""One adapter and several threads; a batch that fails can come again."""

import copy
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

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
