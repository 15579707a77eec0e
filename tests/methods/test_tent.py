"""TENT: its gradient against finite differences, what it moves, and which logits it returns."""

import pytest
import torch
from torch import nn

import ncttt
import prediction_checks
from ncttt import InputError
from ncttt.methods.settings import method_from, settings_of
from ncttt.testing.cases import Case, attached, images, resnet
from ncttt.testing.contract import CHECKS


def test_the_gradient_is_that_of_finite_differences():
    prediction_checks.check_tent_gradient_by_finite_differences()


def test_the_trace_holds_the_entropy():
    adapter = ncttt.Adapter(attached("resnet", ncttt.Tent()))
    before, _ = adapter.predict_at([0, 1], images(6))
    assert adapter.trace.losses[0] == pytest.approx(prediction_checks.slow_entropy(before), abs=1e-5)


def test_only_scale_and_shift_of_batch_norms_move():
    model = attached("resnet", ncttt.Tent())
    expected = {
        f"{name}.{part}"
        for name, module in model.classifier.named_modules()
        if isinstance(module, nn.BatchNorm2d)
        for part in ("weight", "bias")
    }
    assert ncttt.Tent().parameters(model).keys() == expected


def test_it_works_on_a_plain_network_and_on_a_bare_batch_norm_layer():
    assert ncttt.Adapter(resnet(), ncttt.Tent())(images(4)).isfinite().all()
    layer = ncttt.Branched(nn.BatchNorm2d(3), None, ncttt.Tent())
    assert ncttt.Tent().parameters(layer).keys() == {"weight", "bias"}


def test_a_network_without_batch_norm_is_an_error_that_says_what_to_do():
    with pytest.raises(InputError, match=r"found none in ViT: Tent\(moves='norm'\)"):
        attached("vit", ncttt.Tent())
    with pytest.raises(InputError, match=r"found none in Sequential: use a method"):
        ncttt.Adapter(nn.Sequential(nn.Flatten(), nn.Linear(768, 5)), ncttt.Tent())


@pytest.mark.parametrize("architecture", ["resnet", "vgg", "branching"])
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__[6:])
def test_contract_before(architecture, check):
    check(Case(architecture, ncttt.Tent(returns="before")))


def test_before_is_one_step_behind_after():
    model = attached("resnet", ncttt.Tent())
    after = ncttt.Adapter(model, lr=0.1).predict_at([0, 1, 2], images(6))
    before = ncttt.Adapter(model, ncttt.Tent(returns="before"), lr=0.1).predict_at([0, 1, 2, 3], images(6))
    torch.testing.assert_close(before, after[[0, 0, 1, 2]])
    assert not torch.allclose(after[0], after[1])


def test_before_learns_from_the_stream_all_the_same():
    model = attached("resnet", ncttt.Tent())
    adapters = [
        ncttt.Adapter(model, ncttt.Tent(returns=which), lr=0.1, protocol="online") for which in ("before", "after")
    ]
    for adapter in adapters:
        adapter(images(6, seed=1))
    before, after = adapters
    torch.testing.assert_close(before(images(6, seed=2)), after.predict_at([0, 1], images(6, seed=2))[0])


@pytest.mark.parametrize(("returns", "passes"), [("before", 1), ("after", 2)])
def test_how_often_the_classifier_runs(returns, passes):
    adapter = ncttt.Adapter(attached("resnet", ncttt.Tent()), ncttt.Tent(returns=returns))
    count = []
    adapter.model.classifier.register_forward_hook(lambda *_: count.append(1))
    adapter(images(4))
    assert len(count) == passes


def test_a_layers_name_moves_everything_up_to_it():
    moved = ncttt.Tent(moves="layer2").parameters(attached("resnet", ncttt.Tent()))
    assert {name.partition(".")[0] for name in moved} == {"layer1", "layer2"}
    assert "layer1.0.weight" in moved


class Breaking(torch.optim.SGD):
    """Writes NaN into every parameter, as a gradient that is not finite would."""

    def step(self, closure=None):
        for parameter in self.param_groups[0]["params"]:
            parameter.data.fill_(torch.nan)


def test_a_step_that_breaks_the_model_is_undone_though_the_logits_do_not_show_it():
    adapter = ncttt.Adapter(resnet(), ncttt.Tent(returns="before"), optimizer=Breaking, lr=1.0, protocol="online")
    first = adapter(images(4))
    assert adapter.trace.fell_back
    assert torch.equal(adapter(images(4)), first)


def test_settings_are_checked_and_saved():
    with pytest.raises(InputError, match="returns must be one of after, before; found 'during'"):
        ncttt.Tent(returns="during")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no layer 'batchnorm'"):
        ncttt.Adapter(attached("resnet", ncttt.Tent()), ncttt.Tent(moves="batchnorm"))
    method = ncttt.Tent(returns="before", lr=1e-4)
    assert method_from(settings_of(method)) == method
