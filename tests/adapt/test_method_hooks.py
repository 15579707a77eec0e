"""What a method may do after a step and after a batch, and the facts of the source that it may need."""

import copy
import io
from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch
from torch import nn

import ncttt
from contract import FactToy, RestoringToy
from ncttt import InputError
from ncttt.base.optimizers import make_optimizer
from ncttt.methods import METHODS, Objective, needs_of
from ncttt.testing.cases import attached, fingerprint, images, resnet


def stream(method: ncttt.Method, **settings) -> ncttt.Adapter:
    torch.manual_seed(0)
    return ncttt.Adapter(attached("resnet", method), protocol="online", **settings)


def moving(adapter: ncttt.Adapter) -> dict[str, torch.Tensor]:
    return {name: p.detach().clone() for name, p in adapter.method.parameters(adapter.model).items()}


def test_after_a_step_weights_are_drawn_back_to_the_sources():
    plain, drawn = stream(RestoringToy(back=0.0)), stream(RestoringToy(back=0.25))
    source = moving(plain)
    for adapter in (plain, drawn):
        adapter(images(6))
    for name, free in moving(plain).items():
        torch.testing.assert_close(moving(drawn)[name], torch.lerp(free, source[name], 0.25))
        torch.testing.assert_close(drawn.model.source_parameters()[name], source[name], rtol=0, atol=0)


def test_it_is_called_after_each_step_and_only_then():
    adapter = stream(RestoringToy(), steps=3)
    adapter.predict_at([0], images(6))
    assert adapter.model.memory.steps == 0
    adapter.predict_at([0, 2, 3], images(6))
    assert adapter.model.memory.steps == 3


def test_an_error_after_a_step_leaves_the_state_before_the_batch(monkeypatch):
    adapter, same = stream(RestoringToy()), stream(RestoringToy())
    for each in (adapter, same):
        each(images(6, seed=1))
    before = fingerprint(adapter.model)

    def breaking(self, model):
        next(iter(self.parameters(model).values())).fill_(7.0)
        model.memory.steps += 5
        raise RuntimeError("broken")

    for name in ("after_step", "forgets"):
        with monkeypatch.context() as patch:
            patch.setattr(RestoringToy, name, breaking)
            with pytest.raises(RuntimeError, match="broken"):
                adapter(images(6, seed=2))
        after = fingerprint(adapter.model)
        assert all(torch.equal(value, after[key]) for key, value in before.items() if isinstance(value, torch.Tensor))
    assert torch.equal(adapter(images(6, seed=2)), same(images(6, seed=2)))


def test_a_method_sends_the_stream_back_to_its_beginning():
    adapter = stream(RestoringToy(after=2))
    first = adapter(images(6))
    assert not adapter.trace.reset
    adapter(images(6, seed=1))
    assert adapter.trace.reset
    assert adapter.trace.stopped == "steps"
    assert adapter.model.memory.steps == 0
    for name, value in moving(adapter).items():
        assert torch.equal(value, adapter.model.source_parameters()[name])
    assert torch.equal(adapter(images(6)), first)  # also the optimizer has no history


def test_the_random_numbers_go_on_after_such_a_reset():
    @dataclass(frozen=True, kw_only=True)
    class Noisy(RestoringToy):
        name: ClassVar[str] = "noisy"

        def predict(self, model, images):
            logits = model(images)
            return logits + torch.rand_like(logits)

    adapter = stream(Noisy(after=1, lr=0.0), steps=0)
    rows = [adapter(images(6)) for _ in range(2)]
    assert not torch.equal(*rows)


def test_episodic_batches_are_not_asked(monkeypatch):
    monkeypatch.setattr(RestoringToy, "forgets", lambda self, model: pytest.fail("asked"))
    adapter = ncttt.Adapter(attached("resnet", RestoringToy()))
    adapter(images(6))
    assert not adapter.trace.reset


def test_a_stream_that_has_begun_again_has_no_batch_to_bake_and_bakes_a_new_one():
    adapter = stream(RestoringToy(after=1))
    adapter(images(6))
    with pytest.raises(InputError, match="none came since the last reset"):
        adapter.bake()
    twin = copy.deepcopy(adapter)
    baked = adapter.bake(images(6, seed=1))
    assert twin.model.source is twin._state.snapshot.source
    twin.predict_at([0, 1], images(6, seed=1))
    assert not torch.equal(baked.classifier.layer1[1].weight, adapter.model.classifier.layer1[1].weight)


def test_a_saved_state_goes_on_to_the_same_reset():
    one, other = stream(RestoringToy(after=3)), stream(RestoringToy(after=3))
    one(images(6))
    file = io.BytesIO()
    torch.save(one.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file, weights_only=True))
    for seed in range(1, 4):
        assert torch.equal(one(images(6, seed)), other(images(6, seed)))
        assert one.trace.reset == other.trace.reset == (seed == 2)


def test_nothing_to_learn_may_come_with_logits_and_costs_no_other_forward(monkeypatch):
    adapter = stream(RestoringToy())
    given = images(6)
    monkeypatch.setattr(
        RestoringToy, "adaptation_loss", lambda self, model, images: Objective(None, logits=model(images))
    )
    count = []
    adapter.model.classifier.register_forward_hook(lambda *_: count.append(1))
    logits = adapter(given)
    assert (len(count), adapter.trace.stopped, adapter.trace.steps) == (1, "nothing to learn", 0)
    assert torch.equal(logits, adapter.predict_at([0], given)[0])


def test_logits_that_come_with_nothing_to_learn_move_the_statistics_of_a_stream(monkeypatch):
    plain, given = stream(RestoringToy(), norm="stream(0.05)", steps=0), stream(RestoringToy(), norm="stream(0.05)")
    monkeypatch.setattr(
        RestoringToy, "adaptation_loss", lambda self, model, images: Objective(None, logits=model(images))
    )
    for seed in range(2):
        torch.testing.assert_close(given(images(6, seed)), plain(images(6, seed)))
    for one, other in zip(given.model.classifier.buffers(), plain.model.classifier.buffers(), strict=True):
        torch.testing.assert_close(one, other)


def test_source_values_follow_the_model():
    adapter = stream(RestoringToy()).double()
    assert {value.dtype for value in adapter.model.source_parameters().values()} == {torch.float64}
    adapter(images(4).double())


@pytest.mark.parametrize("given", ["plain", "other method", "not calibrated"])
def test_facts_that_are_missing_are_one_error_that_says_how_to_get_them(given):
    model = {
        "plain": resnet,
        "other method": lambda: attached("resnet", ncttt.Tent()),
        "not calibrated": lambda: ncttt.attach(resnet(), None, FactToy(), images(2)),
    }[given]()
    with pytest.raises(InputError, match=r"FactToy needs the mean logits of the source.*ncttt.calibrated\(net, FactT"):
        ncttt.Adapter(model, FactToy())


@pytest.mark.parametrize("kind", ["batches", "pairs", "iterator"])
def test_calibrated_measures_the_facts_in_one_call(kind):
    torch.manual_seed(0)
    net, batches = resnet().eval(), [images(6, seed=1), images(4, seed=2)]
    data = {"batches": batches, "pairs": [(part, None) for part in batches], "iterator": iter(batches)}[kind]
    model = ncttt.calibrated(net, FactToy(), data)
    assert model.classifier is net
    assert model.layer is None
    with torch.no_grad():
        expected = net(images(5)) - net(torch.cat(batches)).mean(0)
    torch.testing.assert_close(ncttt.Adapter(model)(images(5)), expected)


def test_calibrated_takes_the_classifier_of_another_model():
    other = attached("resnet", ncttt.Tent())
    model = ncttt.calibrated(other, FactToy(), [images(6)])
    torch.testing.assert_close(
        ncttt.Adapter(model, ncttt.Source())(images(4)), ncttt.Adapter(other, ncttt.Source())(images(4))
    )
    with pytest.raises(InputError, match="normalisation of its own"):
        ncttt.calibrated(other, FactToy(), [images(6)], mean=[0.5] * 3, std=[0.2] * 3)


@pytest.mark.parametrize(
    ("method", "data", "message"),
    [
        (ncttt.NCTTT(), [images(2)], "NCTTT needs a training of its own"),
        (FactToy(), [], "at least one batch of source images"),
        (FactToy(), 3, "batches of source images; found 3"),
    ],
)
def test_calibrated_refuses(method, data, message):
    with pytest.raises(InputError, match=message):
        ncttt.calibrated(resnet(), method, data)


def test_a_calibrated_model_is_saved_and_loaded(tmp_path):
    model = ncttt.calibrated(ncttt.models.small(num_classes=5, width=4), ncttt.Tent(), [images(6)])
    ncttt.save(model, tmp_path)
    again = ncttt.load(tmp_path)
    assert again.layer is None
    assert torch.equal(ncttt.Adapter(again)(images(4)), ncttt.Adapter(model)(images(4)))


def test_what_a_method_needs_is_known_with_and_without_its_module():
    for name, kind in METHODS.items():
        assert needs_of(name) == kind.needs != ""
    assert needs_of("ttt") == "own training"
    assert needs_of("tent") == "nothing"
    assert FactToy.needs == "mean logits"


def test_optimizers_with_momentum_have_names():
    parameter = [nn.Parameter(torch.zeros(1))]
    for name, nesterov in {"momentum": False, "nesterov": True}.items():
        made = make_optimizer(name, parameter, 0.1)
        assert isinstance(made, torch.optim.SGD)
        assert made.defaults["momentum"] == 0.9
        assert made.defaults["nesterov"] is nesterov
    with pytest.raises(InputError, match="no optimizer 'momentom'; did you mean 'momentum'"):
        ncttt.Tent(optimizer="momentom")


@pytest.mark.filterwarnings("ignore::ncttt.adapt.small_batches.SmallBatchWarning")
@pytest.mark.parametrize("policy", ["stream(0.01)", "window(8)", "running(0.1, 1)"])
@pytest.mark.parametrize("method", [ncttt.SAR, ncttt.DeYO, ncttt.ROID])
def test_a_second_pass_over_a_batch_does_not_move_the_statistics_again(method, policy):
    open_to_all = {"margin": 2.0} | ({"least_drop": -1.0} if method is ncttt.DeYO else {})
    settings = {} if method is ncttt.ROID else open_to_all
    once = stream(ncttt.ETA(margin=2.0, redundancy=2.0), norm=policy)
    twice = stream(method(**settings), norm=policy)
    for adapter in (once, twice):
        adapter(images(6))
        assert adapter.trace.steps == 1
    for one, other in zip(once.model.batch_norms(), twice.model.batch_norms(), strict=True):
        torch.testing.assert_close(one.running_mean, other.running_mean)
        torch.testing.assert_close(one.running_var, other.running_var)
