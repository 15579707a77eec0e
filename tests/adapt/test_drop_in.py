"""The adapter as a module: where a classifier stands in somebody's code, an adapter can stand."""

import copy
import io
import math
from dataclasses import replace

import pytest
import torch
from torch import nn

import ncttt
from contract import RandomToy
from contrast_alone import CONTRAST_ALONE
from ncttt import InputError
from ncttt.adapt.state import EXTRA
from ncttt.testing.cases import Case, attached, images, resnet

METHOD = ncttt.NCTTT(
    conditional=False,
    scaling="standardize",
    hidden=32,
    moves="encoder",
    **CONTRAST_ALONE,
)
MEAN, STD = (0.5, 0.4, 0.3), (0.2, 0.25, 0.3)


def clean_accuracy(model, x, y, batch_size=3):
    """The loop of RobustBench, as it is in its `utils`."""
    acc = 0.0
    with torch.no_grad():
        for counter in range(math.ceil(x.shape[0] / batch_size)):
            part = slice(counter * batch_size, (counter + 1) * batch_size)
            acc += (model(x[part]).max(1)[1] == y[part]).float().sum()
    return acc.item() / x.shape[0]


class Classifier(nn.Module):
    """A user's own module, whose evaluation puts everything into evaluation mode and freezes it."""

    def __init__(self, net: nn.Module):
        super().__init__()
        self.net = net

    def evaluate(self, batches):
        self.train()
        self.eval()
        for parameter in self.parameters():
            parameter.requires_grad = False
        with torch.inference_mode():
            return [self.net(batch.clone()) for batch in batches]


def test_loops_of_others_evaluate_an_adapter_as_they_evaluate_a_classifier():
    case = Case("resnet", METHOD)
    batches = [images(3, seed) for seed in range(2)]
    expected = [case.adapter()(batch) for batch in batches]
    inside = Classifier(nn.Sequential(case.adapter()))
    assert all(map(torch.equal, inside.evaluate(batches), expected))
    labels, adapter = torch.cat(expected).argmax(1), case.adapter()
    assert clean_accuracy(adapter, torch.cat(batches), labels) == 1.0
    assert adapter.trace.steps == 3


def test_modes_neither_switch_adaptation_off_nor_the_model_into_training():
    case = Case("resnet", METHOD)
    expected = case.adapter()(images(6))
    for mode in (True, False):
        adapter = case.adapter()
        assert nn.Sequential(adapter).train(mode)[0] is adapter
        assert adapter.training is mode
        assert not any(part.training for part in adapter.model.modules())
        assert torch.equal(adapter(images(6)), expected)
        assert adapter.trace.steps == 3


@pytest.mark.parametrize("policy", ["batch", "running(0.1, 1)"])
def test_everything_moves_with_the_module(policy):
    case = Case("resnet", METHOD, protocol="online", norm=policy)
    adapter = case.adapter()
    adapter(images(6).float())
    outer = nn.Sequential(adapter).double()
    assert outer(images(6, 1)).dtype == torch.float64
    history = adapter.state_dict()[EXTRA]["optimizer"]
    assert {part.dtype for entry in history.values() for part in entry.values() if part.ndim} == {torch.float64}
    other = case.adapter()
    other(images(6))
    torch.testing.assert_close(adapter.double()(images(6, 2)), _second(other), check_dtype=False, rtol=1e-3, atol=1e-3)
    adapter.reset()
    for name, tensor in case.model.double().state_dict().items():
        assert torch.equal(adapter.model.state_dict()[name], tensor), name


def _second(adapter):
    adapter(images(6, 1))
    return adapter(images(6, 2))


def test_a_state_follows_the_protocol_of_modules():
    case = Case("resnet", METHOD, protocol="online")
    straight, first, second = (case.adapter() for _ in range(3))
    expected = [straight(images(6, seed)) for seed in range(3)]
    first(images(6, 0))
    outer, file = nn.Sequential(nn.Identity(), first), io.BytesIO()
    state = outer.state_dict()
    assert {f"1.model.{name}" for name in case.model.state_dict()} | {f"1.{EXTRA}"} == set(state)
    torch.save(state, file)
    assert torch.equal(first(images(6, 1)), expected[1])  # a state is no view of the stream
    file.seek(0)
    for given in (state, torch.load(file, weights_only=True)):
        nn.Sequential(nn.Identity(), second).load_state_dict(given)
        assert torch.equal(second(images(6, 1)), expected[1])
        assert torch.equal(second(images(6, 2)), expected[2])
    assert torch.equal(copy.deepcopy(first)(images(6, 2)), expected[2])


def test_a_state_holds_buffers_that_a_checkpoint_does_not():
    case = Case("resnet", ncttt.TTTPlus(queue=16), protocol="online")
    straight, first, second = (case.adapter() for _ in range(3))
    expected = [straight(images(6, seed)) for seed in range(2)]
    first(images(6, 0))
    second.load_state_dict(first.state_dict())
    assert torch.equal(second(images(6, 1)), expected[1])


SETTINGS = [
    ({"steps": 1}, "steps=1; this adapter has steps=3"),
    ({"lr": 0.5}, "lr=0.5; this adapter has lr=0.001"),
    ({"norm": "source"}, "norm="),
    ({"protocol": "continual"}, "protocol=continual; this adapter has protocol=online"),
    ({"seed": 3}, "seed=3; this adapter has seed=0"),
    ({"stop": 0.5}, "stop=0.5; this adapter has stop=None"),
    ({"method": replace(METHOD, entropy=0.5)}, "entropy=0.5; this adapter has entropy=0"),
    ({"method": ncttt.Tent()}, "made with method=Tent; this adapter has method=NCTTT"),
]


@pytest.mark.parametrize(
    ("settings", "message"), SETTINGS, ids=lambda part: "" if isinstance(part, str) else next(iter(part))
)
def test_a_state_of_other_settings_is_refused_and_nothing_applied(settings, message):
    case = Case("resnet", METHOD, protocol="online")
    other, adapter = case.adapter(**settings), case.adapter()
    other(images(6))
    assert_refused(adapter, other.state_dict(), message)


def assert_refused(adapter, state, message):
    before = adapter.state_dict()
    with pytest.raises(InputError, match=message):
        adapter.load_state_dict(state)
    after = adapter.state_dict()
    assert all(torch.equal(after[name], before[name]) for name in before.keys() - {EXTRA})
    assert after[EXTRA]["batches"] == before[EXTRA]["batches"]


def test_a_state_of_another_checkpoint_is_refused():
    case = Case("resnet", METHOD, protocol="online")
    for part in (case.model.classifier.fc.weight, case.model.classifier.layer1[0].weight):  # stays, and moves
        adapter = case.adapter()
        kept = part.data.clone()
        part.data.add_(1e-3)
        other = case.adapter()
        part.data.copy_(kept)
        other(images(6))
        assert_refused(adapter, other.state_dict(), "another checkpoint")


def broken_states(state):
    extra = state[EXTRA]
    name = next(name for name in state if name.endswith("fc.weight"))
    yield {key: part for key, part in state.items() if key != name}, "fc.weight is missing there"
    yield state | {"odd": torch.zeros(1)}, "odd is .* missing in this adapter"
    yield state | {name: torch.zeros(2, 2)}, r"fc.weight is \(2, 2\)"
    yield state | {EXTRA: extra | {"odd": 1}}, "no state of an adapter"
    yield state | {EXTRA: extra | {"batches": -1}}, "batches: found -1; expected a whole number from 0"
    yield state | {EXTRA: extra | {"generator": torch.zeros(3, dtype=torch.uint8)}}, "random numbers"
    yield state | {EXTRA: extra | {"optimizer": {999: {}}}}, "other parameters than it has here; see 999"
    history = {key: {"exp_avg": torch.zeros(7)} for key in extra["optimizer"]}
    yield state | {EXTRA: extra | {"optimizer": history}}, "other parameters"
    yield {"tensors": {}, "optimizer": {}, "kind": "Adam"}, "no state of an adapter"


def test_a_broken_state_is_refused_and_nothing_applied():
    case = Case("resnet", METHOD, protocol="online")
    other, adapter = case.adapter(), case.adapter()
    other(images(6))
    for state, message in broken_states(other.state_dict()):
        assert_refused(adapter, state, message)
    with pytest.raises(InputError, match="assign=True"):
        adapter.load_state_dict(other.state_dict(), assign=True)


def test_plain_modules_are_normalised_by_mean_and_std():
    net, batch = resnet().eval(), images(6)
    normalised = (batch - torch.tensor(MEAN)[:, None, None]) / torch.tensor(STD)[:, None, None]
    for method in (ncttt.Source(), ncttt.PTBN(), ncttt.Tent()):
        given = ncttt.Adapter(net, method, mean=MEAN, std=STD)(batch)
        torch.testing.assert_close(given, ncttt.Adapter(net, method)(normalised))
    with pytest.raises(InputError, match="mean and std go together"):
        ncttt.Adapter(net, ncttt.PTBN(), mean=MEAN)
    with pytest.raises(InputError, match="expected images of 3 channels, as in mean"):
        ncttt.Adapter(net, ncttt.PTBN(), mean=MEAN, std=STD)(images(2)[:, :1])
    with pytest.raises(InputError, match=r"mean and std are for plain modules.*mean=\[0.5"):
        ncttt.Adapter(attached("resnet", METHOD), mean=MEAN, std=STD)


def test_saving_an_adapter_as_a_checkpoint_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"adapter.bake\(\), or the state of the stream, adapter.state_dict\(\)"):
        ncttt.save(Case("resnet", METHOD).adapter(), tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_a_method_may_have_nothing_to_learn_from_yet():
    class Patient(RandomToy):
        def adaptation_loss(self, model, images):
            return None if len(images) < 4 else super().adaptation_loss(model, images)

    adapter = Case("resnet", Patient(), protocol="online").adapter()
    adapter(images(3))
    assert (adapter.trace.stopped, adapter.trace.steps) == ("nothing to learn", 0)
    adapter(images(4))
    assert (adapter.trace.stopped, adapter.trace.steps) == ("steps", 3)
