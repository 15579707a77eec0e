"""Snapshots: whole or not at all, exact, and nothing in them is executed."""

from itertools import pairwise

import pytest
import torch
from service import MODEL, digits

import ncttt
from ncttt import InputError
from ncttt.serve.snapshots import Facts, Snapshots, packed, spare, unpacked

pytestmark = pytest.mark.filterwarnings("ignore::ncttt.adapt.SmallBatchWarning")
FACTS = Facts("door", 3, False, 12, 1.5, "learned", "0" * 64)


@pytest.fixture
def store(tmp_path):
    return Snapshots(tmp_path / "states", kept=4)


def adapter() -> ncttt.Adapter:
    method = ncttt.Tent(lr=0.01, gather=4, norm="batch")
    return ncttt.Adapter(ncttt.load(MODEL), method, protocol="online", norm=("batch", "stream(0.01)"))


def images(first: int, count: int) -> torch.Tensor:
    return torch.from_numpy(digits()[first : first + count]).permute(0, 3, 1, 2).float().div(255)


def test_nested_values_come_back():
    value = {"a": torch.rand(2, 3), "b": {0: {"step": torch.tensor(3.0), "n": 2}}, "c": [None, True, 1.5, "x"]}
    tensors = {}
    again = unpacked(packed(value, tensors), tensors)
    assert len(tensors) == 2
    assert torch.equal(again["a"], value["a"])
    assert again["b"][0]["n"] == 2
    assert again["c"] == value["c"]


def test_what_is_no_tensor_and_no_json_is_refused():
    with pytest.raises(InputError, match="cannot be written"):
        packed({"a": object()}, {})


def test_a_stream_goes_on_bit_by_bit_from_its_snapshot(store):
    """With an optimizer that has a history, and images that wait for a step."""
    whole, first, second = adapter(), adapter(), adapter()
    for begin in range(0, 12, 2):
        whole(images(begin, 2))
        if begin < 6:
            first(images(begin, 2))
    store.write(FACTS, first.stream_state())
    facts, state = store.read("door", 3)
    assert facts == FACTS
    second.load_stream_state(state)
    for begin in range(6, 12, 2):
        last = second(images(begin, 2))
    assert second.trace.steps == 1
    with whole.kept():
        assert torch.equal(second(images(20, 5)), whole(images(20, 5)))
    assert last.shape == (2, 10)


def test_a_snapshot_holds_no_more_than_what_moves(store):
    tent = adapter()
    whole = sum(tensor.numel() for tensor in tent.state_dict().values() if isinstance(tensor, torch.Tensor))
    state = tent.stream_state()
    moving = sum(tensor.numel() for tensor in state.values() if isinstance(tensor, torch.Tensor))
    assert moving < whole / 10


@pytest.mark.parametrize("place", [0, 9, 100, -1, -1000])
def test_a_damaged_byte_is_noticed(store, place):
    store.write(FACTS, adapter().stream_state())
    (path,) = (store.folder / "door").glob("*.safetensors")
    content = bytearray(path.read_bytes())
    content[place] ^= 0x10
    path.write_bytes(content)
    with pytest.raises(InputError, match=str(path)):
        store.read("door", 3)


def test_a_cut_file_a_foreign_one_and_none_are_refused(store):
    with pytest.raises(InputError):
        store.read("door", 3)
    store.write(FACTS, {"a": torch.zeros(3)})
    (path,) = (store.folder / "door").glob("*.safetensors")
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(InputError, match="no snapshot"):
        store.read("door", 3)
    torch.save({"a": 1}, path)
    with pytest.raises(InputError, match="no snapshot"):
        store.read("door", 3)


def test_a_file_under_another_name_is_refused(store):
    store.write(FACTS, {"a": torch.zeros(3)})
    (path,) = (store.folder / "door").glob("*.safetensors")
    path.rename(path.with_name("00000007.safetensors"))
    with pytest.raises(InputError, match="holds version 3"):
        store.read("door", 7)


def test_old_versions_are_thinned_out(store):
    for version in range(1, 60):
        store.write(FACTS._replace(version=version), {"a": torch.zeros(1)})
    versions = store.versions("door")
    assert len(versions) == 4
    assert versions[0] == 1
    assert versions[-1] == 59
    gaps = [after - before for before, after in pairwise(versions)]
    assert gaps == sorted(gaps, reverse=True)


@pytest.mark.parametrize("kept", [1, 2])
def test_few_versions_are_the_newest(kept):
    assert spare([1, 5, 9], kept) == [1, 5, 9][: 3 - kept]


def test_a_state_of_another_setup_is_refused(store):
    other = ncttt.Adapter(ncttt.load(MODEL), ncttt.Tent(lr=0.02, gather=4), protocol="online")
    store.write(FACTS, other.stream_state())
    with pytest.raises(InputError, match="was made with"):
        adapter().load_stream_state(store.read("door", 3)[1])
