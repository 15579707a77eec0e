"""Groups of images to learn from, where batches are too small for a step."""

from dataclasses import replace

import pytest
import torch

import ncttt
from ncttt import InputError
from ncttt.methods import METHODS
from ncttt.testing.cases import CLASSES, Case, images

SIZE = 6
OWN = ("rotta", "note")  # have a memory of their own
TENT = ncttt.Tent(gather=SIZE, norm="source", lr=0.01)
pytestmark = pytest.mark.filterwarnings("ignore::ncttt.adapt.SmallBatchWarning")


def adapter_of(method: ncttt.Method = TENT, protocol: str = "online", **settings) -> ncttt.Adapter:
    return Case("resnet", method).adapter(protocol=protocol, **settings)


def moved(adapter: ncttt.Adapter) -> dict[str, torch.Tensor]:
    return {name: parameter.detach().clone() for name, parameter in adapter.model.classifier.named_parameters()}


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("sizes", [(1,) * 12, (2, 2, 2, 3, 3), (4, 4, 4), (5, 7)])
def test_a_step_learns_from_the_images_that_waited_and_those_that_came(sizes):
    """Against a slow version: the groups put together by hand, each image predicted when it comes."""
    gathering, slow = adapter_of(), adapter_of(replace(TENT, gather=0))
    stream, group = images(sum(sizes)), []
    for batch in stream.split(list(sizes)):
        group.append(batch)
        complete = sum(map(len, group)) >= SIZE
        if complete:
            slow(torch.cat(group))
            group = []
        expected = slow.predict_at([0], batch)[0]
        assert torch.equal(gathering(batch), expected)
        assert gathering.trace.stopped == ("steps" if complete else "gathering")
        assert same(moved(gathering), moved(slow))


@pytest.mark.parametrize("method", [TENT, ncttt.ETA(gather=SIZE), ncttt.MEMO(gather=SIZE, views=2)])
def test_a_batch_that_is_a_group_by_itself_is_learned_from_as_ever(method):
    one, other = adapter_of(method), adapter_of(replace(method, gather=0))
    for seed in range(2):
        assert torch.equal(one(images(SIZE, seed)), other(images(SIZE, seed)))
    assert same(moved(one), moved(other))


def test_logits_are_those_of_the_batch_not_of_the_group():
    adapter = adapter_of(ncttt.ETA(gather=SIZE, margin=10.0, redundancy=10.0, norm="source"))
    for number in range(3):
        batch = images(2, number)
        logits = adapter(batch)
        assert logits.shape == (2, CLASSES)
        with torch.no_grad():
            assert torch.allclose(logits, adapter.model(batch), atol=1e-6)
    assert adapter.trace.steps == 3


def test_a_stream_that_forgets_lets_nobody_wait():
    adapter = adapter_of()
    adapter(images(SIZE - 1))
    adapter.new_domain()
    adapter(images(1))
    assert adapter.trace.stopped == "gathering"


def test_a_state_goes_on_in_the_middle_of_a_group():
    adapter, other = adapter_of(), adapter_of()
    adapter(images(SIZE - 1))
    other.load_state_dict(adapter.state_dict())
    last = images(1, seed=3)
    assert torch.equal(adapter(last), other(last))
    assert other.trace.stopped == "steps"
    assert same(moved(adapter), moved(other))


def test_a_group_that_breaks_the_model_is_let_go():
    adapter = adapter_of(lr=1e30)
    before = moved(adapter)
    adapter(images(SIZE - 1))
    adapter(images(1))
    assert adapter.trace.stopped == "guard"
    assert same(before, moved(adapter))
    adapter(images(SIZE - 1))
    assert adapter.trace.stopped == "gathering"


def test_collapse_is_watched_in_groups_too():
    adapter = adapter_of(replace(TENT, norm=("batch", "stream(0.1)")), on_collapse="reset")
    for number in range(SIZE):
        adapter(images(1, number))
    assert adapter.trace.steps == 3
    assert adapter.trace.agreement is not None


def test_the_source_level_is_that_of_the_group():
    adapter = adapter_of(ncttt.NCTTT(gather=SIZE, norm=("batch", "source")), stop=0.0)
    adapter(images(SIZE - 1))
    assert adapter.trace.stopped == "gathering"
    adapter(images(1))
    assert adapter.trace.stopped == "source level"  # every score is above zero


@pytest.mark.parametrize("name", [name for name, kind in METHODS.items() if kind.learns and kind.name not in OWN])
def test_every_method_that_learns_from_batches_can_gather(name):
    method = METHODS[name](gather=SIZE)
    adapter = Case("vit" if name == "ttt_mae" else "resnet", method, confident=True).adapter(protocol="online", steps=1)
    for number in range(SIZE):
        assert adapter.trace.steps == 0
        assert adapter(images(1, number)).shape == (1, CLASSES)
    assert adapter.trace.stopped in ("steps", "nothing to learn")


def test_images_of_another_shape_are_told_and_change_nothing():
    adapter = adapter_of()
    adapter(images(2))
    with pytest.raises(InputError, match=r"a group holds images of shape \(3, 16, 16\), .* found \(3, 20, 20\)"):
        adapter(torch.rand(1, 3, 20, 20))
    assert int(adapter.model.gathered.count) == 2  # type: ignore[union-attr]


def test_what_cannot_gather_says_so():
    with pytest.raises(InputError, match=r"gather=6 .* 'episodic' remembers none"):
        adapter_of(protocol="episodic")
    with pytest.raises(InputError, match="shape must be known"):
        ncttt.Adapter(ncttt.models.small(), TENT, protocol="online")
    with pytest.raises(InputError, match="RoTTA learns from its memory, every 64 images; leave out gather=6"):
        ncttt.RoTTA(gather=6)
    for gather in (-1, 1.5, True):
        with pytest.raises(InputError, match="gather must be a whole number of images"):
            ncttt.Tent(gather=gather)  # type: ignore[arg-type]
