"""Protocols: what each forgets and when, and one of a user's own."""

import sys
from dataclasses import dataclass
from types import ModuleType

import pytest
import torch

import ncttt
from contract import RandomToy
from ncttt import InputError
from ncttt.adapt import PROTOCOLS, Protocol
from ncttt.testing.cases import Case, images

THREES = Protocol("threes", "forgets after three batches", batches=3)


@dataclass(frozen=True)
class AfterTheFirst(Protocol):
    """A rule of one's own: the first batch is practice."""

    def forgets_after(self, batch: int) -> bool:
        return batch == 1


def logits(protocol: str | Protocol, seeds: list[int]) -> list[torch.Tensor]:
    adapter = Case("resnet", RandomToy()).adapter(protocol=protocol)
    return [adapter(images(4, seed)) for seed in seeds]


def test_the_table_holds_three_in_their_order():
    assert list(PROTOCOLS) == ["episodic", "online", "continual"]
    assert [protocol.name for protocol in PROTOCOLS.values()] == list(PROTOCOLS)
    assert all(protocol.title for protocol in PROTOCOLS.values())
    assert [protocol.remembers for protocol in PROTOCOLS.values()] == [False, True, True]
    assert [protocol.domains for protocol in PROTOCOLS.values()] == [False, True, False]
    assert [protocol.forgets_after(7) for protocol in PROTOCOLS.values()] == [True, False, False]


def test_a_protocol_of_ones_own_forgets_every_few_batches():
    stream = logits(THREES, [0, 1, 2, 0, 1, 2, 0])
    straight = logits("online", [0, 1, 2, 0])
    assert all(torch.equal(a, b) for a, b in zip(stream[:3], straight, strict=False))
    assert all(torch.equal(a, b) for a, b in zip(stream[:3], stream[3:6], strict=True))
    assert torch.equal(stream[6], stream[0])
    assert not torch.equal(straight[3], straight[0])


def test_a_protocol_may_decide_by_the_number_of_the_batch():
    first, second, third = logits(AfterTheFirst("practice", "forgets the first batch"), [0, 0, 0])
    assert torch.equal(second, first)
    assert not torch.equal(third, first)


def test_a_resumed_stream_knows_how_many_batches_it_has_seen():
    case = Case("resnet", RandomToy(), protocol=THREES)
    straight, first, second = (case.adapter() for _ in range(3))
    expected = [straight(images(4, seed)) for seed in range(4)]
    for seed in range(2):
        first(images(4, seed))
    second.load_state_dict(first.state_dict())
    assert all(torch.equal(second(images(4, seed)), expected[seed]) for seed in (2, 3))
    second.reset()
    assert torch.equal(second(images(4, 0)), expected[0])


def test_a_new_domain_is_the_protocols_business():
    case = Case("resnet", RandomToy())
    for name, forgets in {"online": True, "continual": False}.items():
        adapter = case.adapter(protocol=name)
        once = adapter(images(4))
        adapter.new_domain()
        assert torch.equal(adapter(images(4)), once) == forgets


def test_a_batch_left_to_the_source_counts():
    case = Case("resnet", RandomToy(), protocol=THREES, stop="source")
    adapter = case.adapter()
    adapter.model.source_certainty.copy_(torch.tensor([[0.0, 0.0], [-1e9, 0.0]]))
    adapter(images(4))
    assert adapter.trace.stopped == "left to source"
    assert adapter.state_dict()["_extra_state"]["batches"] == 1


def test_a_protocol_is_found_by_name_address_or_as_it_is(monkeypatch):
    module = ModuleType("my_protocols")
    module.threes, module.three = THREES, 3  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "my_protocols", module)
    net = ncttt.models.small(5, width=4)
    for given in (THREES, "my_protocols:threes"):
        adapter = ncttt.Adapter(net, ncttt.PTBN(), protocol=given)
        assert adapter.protocol is THREES
        assert "protocol='threes'" in repr(adapter)
    for wrong, message in {
        "onlin": "no protocol 'onlin'; did you mean 'online'",
        "my_protocols:three": "is no protocol: expected an ncttt.adapt.Protocol; found 3",
        "nowhere:threes": "cannot load 'nowhere:threes'",
    }.items():
        with pytest.raises(InputError, match=message):
            ncttt.Adapter(net, ncttt.PTBN(), protocol=wrong)
    with pytest.raises(InputError, match="no protocol"):
        ncttt.Adapter(net, ncttt.PTBN(), protocol=3)  # type: ignore[arg-type]


@pytest.mark.parametrize("batches", [0, -1, 1.5])
def test_a_protocol_forgets_after_whole_batches(batches):
    with pytest.raises(InputError, match="whole number of batches"):
        Protocol("never", "", batches=batches)
