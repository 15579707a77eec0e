"""Joint training: one pass, both losses fall, the branch learns, the result is reproducible."""

import pytest
import torch

import ncttt
from architectures import attached
from ncttt import InputError
from ncttt.data import load
from ncttt.training.loop import _step


def small_model(seed: int = 0) -> ncttt.Branched:
    torch.manual_seed(seed)
    net = ncttt.models.small(num_classes=10, width=4)
    return ncttt.attach(net, "layer2", ncttt.NCTTT(hidden=32), torch.rand(2, 3, 32, 32))


def test_both_losses_fall_and_the_method_is_calibrated():
    model, seen = small_model(), []
    history = ncttt.train(
        model, load("digits", "fit"), epochs=3, batch_size=64, held_out=load("digits", "val"), report=seen.append
    )
    assert history == seen
    assert [epoch.number for epoch in history] == [1, 2, 3]
    assert history[-1].cross_entropy < history[0].cross_entropy
    assert history[-1].auxiliary < history[0].auxiliary
    assert model.branch.source_score[0] > 0.5
    assert not model.training


def test_training_is_reproducible_and_leaves_the_global_generator_alone():
    models = [small_model(), small_model()]
    data = load("digits", "fit").subset(range(128))
    state = torch.get_rng_state()
    for model in models:
        ncttt.train(model, data, epochs=1, batch_size=32, seed=5)
    assert torch.equal(torch.get_rng_state(), state)
    for first, second in zip(*(model.state_dict().values() for model in models), strict=True):
        assert torch.equal(first, second)


def test_one_pass_through_the_encoder_serves_both_losses():
    model = attached("resnet", ncttt.NCTTT(hidden=16)).train()
    passes = []
    model.classifier.conv1.register_forward_hook(lambda m, i, o: passes.append(len(o)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    _step(model, torch.rand(8, 3, 16, 16), torch.randint(5, (8,)), 1.0, [optimizer])
    assert passes == [8]


@pytest.mark.parametrize("steps", range(1, 8))
def test_any_number_of_steps_can_be_scheduled(steps):
    data = load("digits", "fit").subset(range(32))
    assert len(ncttt.train(small_model(), data, epochs=steps, batch_size=32)) == steps


def test_what_does_not_fit_is_refused():
    data = load("digits", "fit")
    with pytest.raises(InputError, match="nothing to train"):
        ncttt.train(small_model(), data, epochs=0)
    with pytest.raises(InputError, match="nothing to train"):
        ncttt.train(small_model(), data, epochs=1, batch_size=5000)
    with pytest.raises(InputError, match="5 classes, but digits fit has 10"):
        ncttt.train(attached("resnet", ncttt.NCTTT()), data, epochs=1)
