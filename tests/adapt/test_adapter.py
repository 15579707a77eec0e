"""The adapter: protocols, the stop rule, the guard, the trace, saved streams, and bad input."""

import copy
import io
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import ncttt
from contract import RandomToy
from contrast_alone import CONTRAST_ALONE
from ncttt import InputError
from ncttt.adapt.state import EXTRA
from ncttt.model.norm import blend, statistics
from ncttt.testing.cases import CLASSES, Case, attached, images, resnet, trusted

METHOD = ncttt.NCTTT(
    conditional=False,
    scaling="standardize",
    hidden=32,
    moves="encoder",
    **CONTRAST_ALONE,
)


def test_one_step_equals_a_hand_written_loop():
    case = Case("resnet", METHOD)
    batch = images(8)
    logits = case.adapter(steps=2, lr=1e-2)(batch)
    net, branch = copy.deepcopy(case.model.classifier), copy.deepcopy(case.model.branch)
    net.train()
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.track_running_stats, module.running_mean, module.running_var = False, None, None
    head = branch.heads[0].eval()

    def normalised(x):
        return (x - torch.tensor([0.5, 0.4, 0.3])[:, None, None]) / 0.2

    encoder = nn.Sequential(net.layer1, net.layer2)
    optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-2)
    for _ in range(2):
        maps = encoder(normalised(batch))
        projected = F.conv2d(maps, head.projector.weight[:, :, None, None], head.projector.bias)
        projected = F.batch_norm(projected, head.scaling.running_mean, head.scaling.running_var)
        first, _, last = head.discriminator
        hidden = F.leaky_relu(F.conv2d(projected, first.weight[:, :, None, None], first.bias), 0.2)
        logit = F.conv2d(hidden, last.weight[:, :, None, None], last.bias)
        loss = -F.logsigmoid(logit).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.testing.assert_close(logits, net(normalised(batch)).detach(), rtol=1e-4, atol=1e-5)


def test_zero_steps_of_nc_ttt_are_exactly_ptbn():
    model = attached("resnet", METHOD)
    ptbn = ncttt.Adapter(model, ncttt.PTBN())(images(6))
    assert torch.equal(ncttt.Adapter(model, steps=0)(images(6)), ptbn)
    assert not torch.equal(ncttt.Adapter(model, ncttt.Source())(images(6)), ptbn)


def test_source_is_the_model_itself():
    model = attached("resnet", METHOD)
    with torch.no_grad():
        assert torch.equal(ncttt.Adapter(model, ncttt.Source())(images(6)), model(images(6)))
    net = resnet().eval()
    with torch.no_grad():
        assert torch.equal(ncttt.Adapter(net, ncttt.Source())(images(6)), net(images(6)))


def test_online_goes_on_and_episodic_forgets():
    case = Case("resnet", METHOD)
    online, continual, episodic = (case.adapter(protocol=p) for p in ("online", "continual", "episodic"))
    first = [a(images(6)) for a in (online, continual, episodic)]
    second = [a(images(6)) for a in (online, continual, episodic)]
    assert torch.equal(first[0], first[2])
    assert torch.equal(first[0], first[1])
    assert torch.equal(second[2], first[2])
    assert not torch.equal(second[0], first[0])
    assert torch.equal(second[0], second[1])


def test_online_continues_from_the_last_count():
    case = Case("resnet", METHOD)
    by_counts, by_calls = case.adapter(protocol="online"), case.adapter(protocol="online", steps=1)
    at = by_counts.predict_at([1, 2], images(6))
    assert torch.equal(at[0], by_calls(images(6)))
    assert torch.equal(at[1], by_calls(images(6)))
    assert torch.equal(by_counts.predict_at([1], images(6, 2))[0], by_calls(images(6, 2)))


@pytest.mark.parametrize("optimizer", ["adam", "adamw", "sgd", lambda p, lr: torch.optim.SGD(p, lr=lr, momentum=0.9)])
def test_an_online_stream_can_be_saved_and_resumed(optimizer):
    case = Case("resnet", METHOD, protocol="online", optimizer=optimizer)
    straight = case.adapter()
    expected = [straight(images(6, seed)) for seed in range(4)]
    first = case.adapter()
    for seed in range(2):
        first(images(6, seed))
    file = io.BytesIO()
    torch.save(first.state_dict(), file)
    first(images(6, 9))
    file.seek(0)
    second = case.adapter()
    second.load_state_dict(torch.load(file, weights_only=True))
    for seed in (2, 3):
        assert torch.equal(second(images(6, seed)), expected[seed])


def test_a_random_stream_resumes_with_its_random_numbers():
    case = Case("resnet", RandomToy(), protocol="online")
    straight, first, second = (case.adapter() for _ in range(3))
    expected = [straight(images(6, seed)) for seed in range(2)]
    first(images(6, 0))
    second.load_state_dict(first.state_dict())
    assert torch.equal(second(images(6, 1)), expected[1])


def test_a_state_of_another_adapter_is_refused():
    state = Case("resnet", replace(METHOD, moves="layer1")).adapter(protocol="online").state_dict()
    with pytest.raises(InputError, match="made with moves=layer1; this adapter has moves=encoder"):
        Case("resnet", METHOD).adapter(protocol="online").load_state_dict(state)


def calibrated(level: float | None = None) -> ncttt.Branched:
    model = attached("resnet", METHOD)
    model.calibrate([images(16, seed) for seed in range(4)])
    if level is not None:
        model.branch.source_score.copy_(torch.tensor([level, 0.0]))
        model.source_certainty.copy_(torch.tensor([2.0, 0.0]))  # no batch is left to the source
        trusted(model)
    return model


def test_calibration_stores_mean_and_spread_of_the_source_score():
    model = calibrated()
    adapter = ncttt.Adapter(model)
    scores = torch.cat([adapter.shift(images(16, seed)) for seed in range(4)])
    torch.testing.assert_close(model.branch.source_score, torch.stack([scores.mean(), scores.std(correction=0)]))
    level = METHOD.source_level(model, 25)
    assert level == pytest.approx((scores.mean() - 2 * scores.std(correction=0) / 5).item(), abs=1e-6)


def forwards(adapter: ncttt.Adapter, layer: str) -> list[int]:
    """Counts the passes through a layer of the adapter's own model from now on."""
    seen: list[int] = []
    adapter.model.classifier.get_submodule(layer).register_forward_hook(lambda m, i, o: seen.append(len(o)))
    return seen


@pytest.mark.parametrize(("stop", "passes"), [(0.0, 1), ("source", 2)])
def test_a_batch_at_source_level_takes_no_step_and_no_forward_of_its_own(stop, passes):
    adapter = ncttt.Adapter(calibrated(level=0.0), stop=stop)
    seen = forwards(adapter, "layer1.0")
    logits = adapter(images(16))
    assert len(seen) == passes
    assert (adapter.trace.stopped, adapter.trace.steps) == ("source level", 0)
    assert torch.equal(logits, ncttt.Adapter(adapter.model, ncttt.PTBN())(images(16)))


def test_the_stop_rule_ends_the_steps_at_the_level():
    model = calibrated()
    free = ncttt.Adapter(model, steps=20, lr=1e-2)
    free(images(8))
    low, high = free.trace.shift_before, free.trace.shift_after
    assert high > low
    adapter = ncttt.Adapter(model, steps=20, lr=1e-2, stop=(low + high) / 2)
    at = adapter.predict_at([0, 5, 20], images(8))
    assert adapter.trace.stopped == "source level"
    assert 0 < adapter.trace.steps < 20
    assert adapter.trace.shift_after >= (low + high) / 2
    taken = adapter.trace.steps
    assert torch.equal(at[-1], ncttt.Adapter(model, steps=taken, lr=1e-2)(images(8)))


def test_an_unreachable_level_takes_all_steps_and_changes_nothing():
    model = calibrated(level=2.0)
    with_rule, without = ncttt.Adapter(model, steps=3, stop="source"), ncttt.Adapter(model, steps=3)
    assert torch.equal(with_rule(images(16)), without(images(16)))
    assert with_rule.trace.stopped == without.trace.stopped == "steps"
    assert with_rule.trace.losses == without.trace.losses


def test_stop_and_shift_need_a_score_and_a_level():
    with pytest.raises(InputError, match="calibrate"):
        ncttt.Adapter(attached("resnet", METHOD), stop="source")
    with pytest.raises(InputError, match="needs a method with a score"):
        ncttt.Adapter(calibrated(), ncttt.PTBN(), stop=0.5)
    with pytest.raises(InputError, match="needs a method with a score"):
        ncttt.Adapter(resnet(), ncttt.PTBN()).shift(images(2))
    with pytest.raises(InputError, match="stop must be"):
        ncttt.Adapter(calibrated(), stop=float("nan"))
    with pytest.warns(UserWarning, match="other statistics"):
        ncttt.Adapter(calibrated(), stop="source", norm="source")


def test_shift_scores_are_means_over_positions_under_the_policy():
    model = attached("resnet", METHOD)
    adapter = ncttt.Adapter(model)
    score = adapter.shift(images(6), norm="source")
    head = model.branch.heads[0]
    with torch.no_grad():
        expected = head.discriminate(head.project(model.features(images(6)))[None], None)[0].sigmoid().mean(1)
    torch.testing.assert_close(score, expected)
    assert ((score >= 0) & (score <= 1)).all()
    assert not torch.allclose(score, adapter.shift(images(6)))


def test_the_trace_tells_what_happened():
    adapter = Case("resnet", METHOD).adapter(steps=3)
    assert adapter.trace == ncttt.Trace()
    adapter(images(6))
    trace = adapter.trace
    assert (trace.steps, len(trace.losses), trace.stopped, trace.fell_back) == (3, 3, "steps", False)
    assert trace.shift_after > trace.shift_before
    assert trace.shift_before == pytest.approx(adapter.shift(images(6)).mean().item(), abs=1e-6)
    ptbn = ncttt.Adapter(resnet(), ncttt.PTBN())
    ptbn(images(2))
    assert ptbn.trace.stopped == "nothing to learn"


@pytest.mark.parametrize("protocol", ["episodic", "online"])
def test_the_guard_falls_back_to_the_state_before_the_batch(protocol):
    case = Case("resnet", METHOD, protocol=protocol)
    adapter = case.adapter()
    adapter(images(6))
    before = adapter.state_dict()
    clean = copy.deepcopy(adapter)
    clean.steps = 0
    expected = clean(images(6, 1))
    for group in adapter._optimizer.param_groups:
        group["lr"] = 1e30
    logits = adapter(images(6, 1))
    assert adapter.trace.fell_back
    assert adapter.trace.stopped == "guard"
    assert torch.equal(logits, expected)
    after = adapter.state_dict()
    for name in before.keys() - {EXTRA}:
        assert torch.equal(after[name], before[name])
    for key, history in before[EXTRA]["optimizer"].items():
        for entry, value in history.items():
            assert torch.equal(after[EXTRA]["optimizer"][key][entry], value)


def test_without_the_guard_the_user_sees_what_happened():
    adapter = Case("resnet", METHOD).adapter(guard=False, lr=1e30)
    assert not adapter(images(6)).isfinite().all()
    assert not adapter.trace.fell_back
    assert adapter(images(6)).shape == (6, CLASSES)


def test_a_network_with_broken_weights_is_an_error_not_nan():
    net = resnet()
    net.fc.weight.data[0, 0] = torch.nan
    with pytest.raises(InputError, match="not finite even without adaptation"):
        ncttt.Adapter(net, ncttt.Source())(images(2))


def test_policies_can_differ_between_gradient_and_prediction():
    case = Case("resnet", METHOD)
    mixed = case.adapter(norm=("batch", "source"))
    logits = mixed(images(6))
    assert mixed.norm == ("batch", "source")
    adapted = case.adapter(protocol="online")
    adapted(images(6))
    with torch.no_grad():
        assert torch.equal(logits, adapted.model(images(6)))
    assert case.adapter(norm=blend(0.5))(images(6)).isfinite().all()
    with pytest.warns(UserWarning, match="other statistics"):
        looked = ncttt.Adapter(calibrated(level=0.0), stop="source", norm=("source", "batch"))
    assert torch.equal(looked(images(6)), ncttt.Adapter(looked.model, ncttt.PTBN())(images(6)))


def test_nan_and_infinite_pixels_are_named():
    adapter = Case("resnet", METHOD).adapter()
    for value in (torch.nan, torch.inf, -torch.inf):
        batch = images(6).clone()
        batch[4, 0, 0, 0] = value
        with pytest.raises(InputError, match=r"images \[4\] of the batch"):
            adapter(batch)
    assert adapter(images(6)).isfinite().all()


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (torch.zeros(2, 3, 16, 16, dtype=torch.uint8), "uint8"),
        (torch.zeros(3, 16, 16), r"\(3, 16, 16\)"),
        (torch.zeros(0, 3, 16, 16), "non-empty"),
        (255 * torch.ones(2, 3, 16, 16), r"expected images in \[0, 1\]"),
        (-2.1 * torch.ones(2, 3, 16, 16), "normalises them itself"),
    ],
)
def test_batches_that_are_no_images_are_refused(batch, message):
    adapter = Case("resnet", METHOD).adapter()
    with pytest.raises(InputError, match=message):
        adapter(batch)


def test_bad_arguments_are_refused():
    model = attached("resnet", METHOD)
    for settings, message in [
        ({"protocol": "onlin"}, "did you mean 'online'"),
        ({"steps": -1}, "whole number"),
        ({"steps": 1.5}, "whole number"),
        ({"norm": "bach"}, "policy"),
        ({"norm": ("batch",)}, "pair"),
        ({"optimizer": "adm"}, "did you mean 'adam'"),
    ]:
        with pytest.raises(InputError, match=message):
            ncttt.Adapter(model, **settings)
    for counts in ([], [3, 1], [1, 1], [-1]):
        with pytest.raises(InputError):
            ncttt.Adapter(model).predict_at(counts, images(2))
    with pytest.raises(InputError, match="plain module needs a method"):
        ncttt.Adapter(resnet())
    with pytest.raises(InputError, match="needs a model trained for it"):
        ncttt.Adapter(resnet(), METHOD)
    with pytest.raises(InputError, match="must be a Method"):
        ncttt.Adapter(resnet(), "ptbn")


def test_methods_with_other_settings_share_a_branch():
    model = attached("resnet", METHOD)
    adapter = ncttt.Adapter(model, replace(METHOD, moves="layer1", steps=1, sigma_in=0.1))
    assert adapter(images(4)).isfinite().all()
    assert adapter.trace.steps == 1
    with pytest.raises(InputError, match="another conditional than this method's"):
        ncttt.Adapter(model, replace(METHOD, conditional=True))


class Broken(RuntimeError):
    """Raised in the middle of a run."""


@pytest.mark.parametrize("protocol", ["episodic", "online"])
def test_an_error_in_the_middle_leaves_the_state_before_the_batch(protocol):
    adapter = Case("resnet", METHOD, protocol=protocol).adapter(steps=5)
    adapter(images(6))
    before = adapter.state_dict()
    passes = []

    def breaks(module, inputs, output):
        passes.append(1)
        if len(passes) == 3:
            raise Broken

    handle = adapter.model.classifier.layer1[0].register_forward_hook(breaks)
    with pytest.raises(Broken):
        adapter(images(6, 1))
    handle.remove()
    after = adapter.state_dict()
    assert all(torch.equal(after[name], before[name]) for name in before.keys() - {EXTRA})
    assert all(p.grad is None for p in adapter.model.parameters())


def test_a_state_can_be_loaded_twice():
    case = Case("resnet", METHOD, protocol="online")
    adapter = case.adapter()
    adapter(images(6))
    state = adapter.state_dict()
    results = []
    for _ in range(2):
        again = case.adapter()
        again.load_state_dict(state)
        results.append(again(images(6, 1)))
    assert torch.equal(*results)


def test_states_taken_and_loaded_under_inference_mode_work():
    case = Case("resnet", METHOD, protocol="online")
    adapter = case.adapter()
    adapter(images(6))
    with torch.inference_mode():
        state = adapter.state_dict()
        adapter.load_state_dict(state)
    adapter(images(6, 1))
    second = case.adapter()
    second.load_state_dict(state)
    assert second(images(6, 1)).isfinite().all()


def test_states_that_are_none_are_refused():
    adapter = Case("resnet", METHOD, protocol="online").adapter()
    with pytest.raises(InputError, match="no state of an adapter"):
        adapter.load_state_dict({})
    other = Case("resnet", METHOD, protocol="online", optimizer="sgd").adapter()
    with pytest.raises(InputError, match="made with optimizer=SGD; this adapter has optimizer=Adam"):
        adapter.load_state_dict(other.state_dict())
    with pytest.raises(InputError, match="episodic adapter forgets"):
        Case("resnet", METHOD).adapter().load_state_dict(adapter.state_dict())


def test_a_copied_adapter_resets_its_own_model():
    adapter = Case("resnet", METHOD).adapter()
    copied = copy.deepcopy(adapter)
    first = copied(images(6))
    assert torch.equal(copied(images(6)), first)
    assert torch.equal(adapter(images(6)), first)


def test_predict_at_keeps_the_rows_before_the_guard_fires():
    class Exploding(torch.optim.SGD):
        def step(self, closure=None):
            self.taken = getattr(self, "taken", 0) + 1
            self.param_groups[0]["lr"] = 1e30 if self.taken == 3 else 1e-3
            super().step()

    case = Case("resnet", METHOD, optimizer=lambda p, lr: Exploding(p, lr=lr))
    adapter = case.adapter()
    rows = adapter.predict_at([0, 1, 5], images(6))
    assert adapter.trace.fell_back
    assert torch.equal(rows[0], rows[2])
    assert torch.equal(rows[1], case.adapter(steps=1)(images(6)))
    assert not torch.equal(rows[1], rows[0])


def test_a_loss_that_is_not_finite_is_guarded_even_if_the_logits_are():
    class Silent(ncttt.NCTTT):
        def adaptation_loss(self, model, images):
            objective = super().adaptation_loss(model, images)
            return objective._replace(loss=objective.loss + float("inf"))

    model = attached("resnet", Silent())
    adapter = ncttt.Adapter(model, lr=0.0)
    adapter(images(4))
    assert adapter.trace.fell_back
    assert adapter.trace.losses[0] == float("inf")


def test_the_level_is_compared_under_the_statistics_of_the_gradient():
    model = attached("resnet", METHOD)
    batch, source = ncttt.Adapter(model), ncttt.Adapter(model, norm="source")
    scores = [a.shift(images(8)).mean().item() for a in (batch, source)]
    assert abs(scores[0] - scores[1]) > 1e-4
    level = sum(scores) / 2
    adapter = ncttt.Adapter(model, norm=("batch", "source"), stop=level, lr=0.0, steps=2)
    adapter(images(8))
    assert adapter.trace.steps == (0 if scores[0] >= level else 2)
    assert adapter.trace.shift_after is None


def test_float64_models_and_images_meet():
    torch.manual_seed(0)
    model = ncttt.attach(resnet().double(), "layer2", METHOD, images(2))
    assert model.branch.heads[0].projector.weight.dtype == torch.float64
    assert ncttt.Adapter(model)(images(4)).dtype == torch.float64
    assert ncttt.Adapter(resnet(), ncttt.PTBN())(images(4).double()).dtype == torch.float32


def test_calibration_leaves_modes_alone_and_refuses_bad_images():
    model = attached("resnet", METHOD)
    METHOD.calibrate(model, [images(16)])
    expected = model.branch.source_score.clone()
    model.train()
    METHOD.calibrate(model, [images(16)])
    assert torch.equal(model.branch.source_score, expected)
    assert all(module.training for module in model.modules())
    with pytest.raises(InputError, match="finite"):
        METHOD.calibrate(model, [torch.full((2, 3, 16, 16), torch.nan)])
    with pytest.raises(InputError, match="at least one batch"):
        METHOD.calibrate(model, [])
    assert torch.equal(model.branch.source_score, expected)


def test_images_of_other_channels_are_refused():
    with pytest.raises(InputError, match="3 channels"):
        Case("resnet", METHOD).adapter()(torch.rand(2, 1, 16, 16))


@pytest.mark.parametrize("wrong", [{"steps": -1}, {"lr": float("nan")}, {"optimizer": "foo"}, {"norm": "bach"}])
def test_methods_check_their_settings(wrong):
    with pytest.raises(InputError):
        ncttt.PTBN(**wrong)


def test_bytes_as_floats_are_refused_even_without_normalisation():
    with pytest.raises(InputError, match=r"expected images in \[0, 1\]; found"):
        ncttt.Adapter(resnet(), ncttt.PTBN())(255 * images(2))


@pytest.mark.parametrize(
    "wrong", [lambda loss: loss, lambda loss: ncttt.Objective(loss[None]), lambda loss: ncttt.Objective(loss.detach())]
)
def test_an_objective_that_cannot_be_lowered_is_named(wrong):
    class Mine(ncttt.NCTTT):
        def adaptation_loss(self, model, images):
            return wrong(super().adaptation_loss(model, images).loss)

    adapter = ncttt.Adapter(attached("resnet", Mine()))
    with pytest.raises(InputError, match=r"Mine\.adaptation_loss must give an Objective"):
        adapter(images(4))


def test_swapped_arguments_of_predict_at_are_named():
    with pytest.raises(InputError, match="step counts first"):
        ncttt.Adapter(resnet(), ncttt.PTBN()).predict_at(images(2), [0, 1])


def test_calibration_takes_batches_with_labels():
    model = attached("resnet", METHOD)
    METHOD.calibrate(model, [(images(16), torch.zeros(16))])
    expected = model.branch.source_score.clone()
    METHOD.calibrate(model, [images(16)])
    assert torch.equal(model.branch.source_score, expected)


def test_without_a_copy_the_model_itself_moves_and_comes_back():
    model, batch = attached("resnet", METHOD), images(8)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    expected = ncttt.Adapter(model, steps=3, lr=1e-2, protocol="online")(batch)
    adapter = ncttt.Adapter(model, steps=3, lr=1e-2, protocol="online", copy=False)
    assert torch.equal(adapter(batch), expected)
    assert any(not torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    adapter.reset()
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    other = ncttt.Adapter(model, ncttt.Tent(lr=1e-2), copy=False)
    other(batch)
    assert model.method == METHOD  # another method in the meantime is no other model
    assert torch.equal(ncttt.Adapter(model, steps=3, lr=1e-2, protocol="online", copy=False)(batch), expected)


def test_a_step_learns_from_copies_of_the_batch_and_scores_the_batch_alone(monkeypatch):
    seen, loss = [], ncttt.NCTTT.adaptation_loss

    def watched(self, model, images):
        seen.append(images)
        return loss(self, model, images)

    monkeypatch.setattr(ncttt.NCTTT, "adaptation_loss", watched)
    batch = images(6)
    case = Case("resnet", METHOD)
    adapter = ncttt.Adapter(case.model, replace(METHOD, copies=3, steps=2))
    logits = adapter(batch)
    assert [len(batch_seen) for batch_seen in seen] == [18, 18]
    assert all(batch_seen[:6].equal(batch) and batch_seen[6:12].equal(batch.flip(3)) for batch_seen in seen)
    assert len(logits) == 6
    with statistics(case.model.batch_norms(), "batch"), torch.no_grad():
        whole, features = case.model.forward_with_features(seen[0])
        expected = METHOD.score(case.model, features, whole)[:6].mean()
    assert adapter.trace.shift_before == pytest.approx(expected.item(), rel=1e-5)
    assert adapter(batch).equal(logits)


def test_logits_from_before_the_step_are_those_of_the_batch():
    adapter = ncttt.Adapter(ncttt.models.small(5, width=4), ncttt.Tent(returns="before", copies=4))
    assert adapter(images(6)).shape == (6, 5)


@pytest.mark.parametrize("copies", [0, -1, 1.5])
def test_copies_are_a_whole_number(copies):
    with pytest.raises(InputError, match="copies must be a whole number of at least 1"):
        ncttt.NCTTT(copies=copies)
