"""The state of a stream: whatever is wrong with it is one error, and nothing of it is applied."""

import copy

import pytest
import torch

import ncttt
from ncttt import InputError
from ncttt.adapt.state import EXTRA
from ncttt.testing.cases import attached, images

WEIGHT, VAR = "model.classifier.fc.weight", "running_var"
VALUES = {
    "settings": [None, 3, [], {}, {1: "a"}, {"steps": 3}, {None: None}],
    "source": [None, 3, "", "0" * 64, "x" * 64, b"0"],
    "hidden": [None, 3, [], {"a": torch.zeros(1)}, {1: 2}],
    "optimizer": [
        None,
        3,
        [],
        {"a": {}},
        {-1: {}},
        {True: {}},
        {0: 3},
        {0: {"exp_avg": torch.zeros(7)}},
        {0: {"exp_avg": "x"}},
    ],
    "generator": [None, 3, "x", torch.zeros(3, dtype=torch.uint8), torch.zeros(5056), torch.zeros(5056).byte()],
    "batches": [None, -1, 1.5, "3", True, 2**70, float("nan")],
}
CASES = [(name, value) for name, values in VALUES.items() for value in values]
TENSORS = {
    "nan": lambda tensor: torch.full_like(tensor, torch.nan),
    "inf": lambda tensor: torch.full_like(tensor, torch.inf),
    "double": lambda tensor: tensor.double(),
    "half": lambda tensor: tensor.half(),
    "whole": lambda tensor: tensor.long(),
    "truth": lambda tensor: tensor.bool(),
    "complex": lambda tensor: tensor.to(torch.complex64),
    "sparse": lambda tensor: tensor.to_sparse(),
    "meta": lambda tensor: tensor.to("meta"),
    "another shape": lambda tensor: tensor[None],
    "list": lambda tensor: tensor.tolist(),
    "none": lambda tensor: None,
}
HISTORY = {
    "nan": lambda entry: entry | {"exp_avg": entry["exp_avg"] * torch.nan},
    "whole": lambda entry: entry | {"exp_avg": entry["exp_avg"].long()},
    "complex": lambda entry: entry | {"exp_avg": entry["exp_avg"].to(torch.complex64)},
    "truth": lambda entry: entry | {"exp_avg_sq": entry["exp_avg_sq"].bool()},
    "negative": lambda entry: entry | {"exp_avg_sq": -1 - entry["exp_avg_sq"]},
    "missing": lambda entry: {name: part for name, part in entry.items() if name != "exp_avg_sq"},
    "text": lambda entry: entry | {"step": "three"},
    "no step": lambda entry: entry | {"step": None},
    "endless": lambda entry: entry | {"step": torch.tensor(torch.inf)},
}


@pytest.fixture(scope="module")
def model() -> ncttt.Branched:
    return attached("resnet", ncttt.NCTTT(steps=1, optimizer="adam"))


@pytest.fixture(scope="module")
def state(model) -> dict:
    adapter = ncttt.Adapter(model, protocol="online")
    adapter(images(64))
    return adapter.state_dict()


def assert_refused(model: ncttt.Branched, state: object, message: str = "") -> None:
    """Refused, and the stream goes on as if nothing had come."""
    adapter, other = (ncttt.Adapter(model, protocol="online") for _ in range(2))
    for one in (adapter, other):
        one(images(64))
    with pytest.raises(InputError, match=message):
        adapter.load_state_dict(state)
    assert torch.equal(adapter(images(64, 1)), other(images(64, 1)))


@pytest.mark.parametrize(("name", "value"), CASES, ids=lambda value: f"{value!r:.25}")
def test_a_part_that_no_stream_has_is_refused(model, state, name, value):
    assert_refused(model, state | {EXTRA: state[EXTRA] | {name: value}})


@pytest.mark.parametrize("part", ["moves", "stays", "statistics"])
@pytest.mark.parametrize("damage", TENSORS)
def test_a_tensor_that_is_not_of_the_model_is_refused(model, state, part, damage):
    ends = {"moves": "layer1.0.weight", "stays": "fc.weight", "statistics": VAR}
    name = next(name for name in state if name.endswith(ends[part]))
    assert_refused(model, state | {name: TENSORS[damage](state[name])}, name.rpartition(".")[2])


@pytest.mark.parametrize("damage", HISTORY)
def test_a_history_that_the_optimizer_cannot_go_on_from_is_refused(model, state, damage):
    history = copy.deepcopy(state[EXTRA]["optimizer"])
    history[1] = HISTORY[damage](history[1])
    assert_refused(model, state | {EXTRA: state[EXTRA] | {"optimizer": history}}, "the state's optimizer")


@pytest.mark.parametrize("key", [3, None, b"model", ("a", "b")])
def test_names_are_texts(model, state, key):
    assert_refused(model, state | {key: torch.zeros(1)}, "no state of an adapter")


@pytest.mark.parametrize("part", [None, 3, [], {}, "state"])
def test_what_is_no_state_is_refused(model, state, part):
    assert_refused(model, state | {EXTRA: part}, "no state of an adapter")


@pytest.mark.parametrize("given", [None, 3, [], "state", {}])
def test_what_is_no_mapping_is_refused(model, given):
    assert_refused(model, given, "no state of an adapter")


@pytest.mark.sound
def test_the_state_itself_is_taken(model, state):
    first, second = (ncttt.Adapter(model, protocol="online") for _ in range(2))
    first(images(64))
    second.load_state_dict(state)
    assert torch.equal(first(images(64, 1)), second(images(64, 1)))
