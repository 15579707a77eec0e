"""NC-TTT: its losses against slow versions, its options, its presets."""

import math
from dataclasses import replace

import pytest
import torch

import ncttt
import noise_checks
from ncttt import InputError
from ncttt.methods.nc_ttt.branch import Whiten
from ncttt.model.norm import statistics
from ncttt.testing.cases import Case, attached, images

CHECKS = [value for name, value in vars(noise_checks).items() if name.startswith("check_")]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__[6:])
def test_promise(check):
    check()


# Of the small network, up to its third stage.
BATCH_NORMS = ("layer1.1", "layer2.0.2", "layer2.1.block1.1", "layer2.1.block2.1", "layer3.2")


def test_whitening_gives_unit_covariance_and_remembers_the_source():
    torch.manual_seed(0)
    mixing = torch.randn(6, 6)
    rows = torch.randn(4000, 6) @ mixing + 3
    layer = Whiten(6, momentum=1.0, shrinkage=1e-6)
    white = layer(rows)
    torch.testing.assert_close(white.T.cov(), torch.eye(6), rtol=0, atol=1e-2)
    torch.testing.assert_close(white.mean(0), torch.zeros(6), rtol=0, atol=1e-4)
    torch.testing.assert_close(layer.eval()(rows[:1]), white[:1], rtol=1e-3, atol=1e-3)
    # Some processors multiply matrices so that the two halves are rounded differently.
    torch.testing.assert_close(layer.covariance, layer.covariance.T, rtol=1e-5, atol=1e-5)


def test_whitening_survives_a_collapsed_projection():
    layer = Whiten(4)
    assert layer(torch.ones(10, 4)).isfinite().all()
    assert layer(torch.ones(1, 4)).isfinite().all()


@pytest.mark.parametrize("head", ["pixel", "flat"])
@pytest.mark.parametrize("scaling", ["none", "standardize", "whiten"])
@pytest.mark.parametrize("conditional", [True, False])
@pytest.mark.parametrize("noise", ["gaussian", "laplace", "student_t"])
def test_every_combination_trains_and_adapts(head, scaling, conditional, noise):
    method = ncttt.NCTTT(head=head, scaling=scaling, conditional=conditional, noise=noise, views=2, hidden=16)
    case = Case("resnet", method)
    logits, features = case.model.train().forward_with_features(images(8))
    loss = method.training_loss(case.model, images(8), features, logits)
    loss.backward()
    assert loss.isfinite()
    assert all(p.grad is not None for p in case.model.branch.parameters())
    assert case.adapter()(images(4)).isfinite().all()


@pytest.mark.parametrize("head", ["pixel", "flat"])
def test_batches_of_one_a_thousand_and_a_short_last_one(head):
    adapter = Case("resnet", ncttt.NCTTT(head=head, hidden=16), steps=2).adapter()
    for count in (1, 1000, 7):
        logits = adapter(images(count))
        assert logits.shape[0] == count
        assert logits.isfinite().all()
        assert adapter.shift(images(count)).shape == (count,)


def test_no_inner_noise_labels_views_one_and_zero():
    method = ncttt.NCTTT(sigma_in=0.0, sigma_out=0.015, **noise_checks.PLAIN)
    seen, loss, _ = noise_checks.views_seen(method, count=8)
    inside, outside = seen.chunk(2)
    assert not inside.any()
    assert outside.any(-1).all()
    assert loss.isfinite()


def test_moves_choose_what_learns():
    def moved(moves: str) -> set[str]:
        method = ncttt.NCTTT(moves=moves)
        return set(method.parameters(attached("resnet", method, layer="layer3")))

    assert all(name.startswith("layer1") for name in moved("layer1"))
    assert "layer1.0.weight" in moved("layer1")
    assert moved("norm") == {f"{layer}.{kind}" for layer in BATCH_NORMS for kind in ("weight", "bias")}
    assert not any(name.startswith(("layer4", "fc")) for name in moved("encoder") | moved("norm"))
    with pytest.raises(InputError, match="lies after the tapped 'layer3'"):
        moved("layer4")
    with pytest.raises(InputError, match="no layer 'layer9'"):
        moved("layer9")


def test_the_first_half_of_the_layers_up_to_the_tap():
    model = ncttt.attach(ncttt.models.small(10, width=4), "layer4", ncttt.NCTTT(), images(2))
    assert ncttt.NCTTT().moves == "first_half"
    assert set(ncttt.NCTTT().parameters(model)) == set(ncttt.NCTTT(moves="layer2").parameters(model))
    odd = ncttt.attach(ncttt.models.small(10, width=4), "layer3", ncttt.NCTTT(), images(2))
    convolutions = [name for name, moved in ncttt.NCTTT().parameters(odd).items() if moved.ndim > 1]
    assert len(convolutions) == 3  # of five: the odd one moves
    single = ncttt.attach(ncttt.models.small(10, width=4), "layer1", ncttt.NCTTT(), images(2))
    assert ncttt.NCTTT().parameters(single).keys() == single.encoder_parameters().keys()


def test_nothing_to_move_is_an_error():
    model = attached("vgg", ncttt.NCTTT(moves="norm"), layer="0")
    with pytest.raises(InputError, match="nothing to move"):
        ncttt.Adapter(model)


def test_the_papers_two_forms():
    cifar, visda = ncttt.NCTTT.paper_cifar(), ncttt.NCTTT.paper_visda(steps=5)
    assert (cifar.head, cifar.channels, cifar.hidden, cifar.sigma_in, cifar.sigma_out) == ("flat", 96, 1024, 0, 0.015)
    assert (visda.head, visda.channels, visda.hidden, visda.sigma_in, visda.sigma_out) == (
        "pixel",
        16,
        1024,
        0.025,
        0.05,
    )
    assert (cifar.lr, visda.lr, cifar.optimizer, visda.steps) == (1e-5, 1e-4, "adam", 5)
    assert cifar.scaling == visda.scaling == "none"
    assert not cifar.conditional
    assert not visda.conditional
    model = attached("resnet", cifar)
    linear, norm, activation, last = model.branch.heads[0].discriminator
    assert (linear.in_features, linear.out_features, last.out_features) == (96 * 8 * 8, 1024, 1)
    assert (type(norm).__name__, activation.negative_slope) == ("BatchNorm1d", 0.2)


@pytest.mark.parametrize(
    "wrong",
    [
        {"head": "round"},
        {"scaling": "big"},
        {"sigma_in": 1.0, "sigma_out": 0.5},
        {"sigma_out": math.inf},
        {"views": 0},
        {"channels": 0},
        {"noise": "pink"},
    ],
)
def test_bad_settings_are_refused_when_made(wrong):
    with pytest.raises(InputError):
        ncttt.NCTTT(**wrong)


def test_the_flat_head_names_another_image_size():
    adapter = Case("resnet", ncttt.NCTTT(head="flat")).adapter()
    with pytest.raises(InputError, match="head='pixel'"):
        adapter(torch.rand(2, 3, 32, 32))
    assert Case("resnet", ncttt.NCTTT(head="pixel")).adapter()(torch.rand(2, 3, 32, 32)).isfinite().all()


def test_no_gradient_reaches_the_classifier_through_the_condition():
    """Neither in training nor in adaptation; and the tail behind the tap builds no graph while adapting."""
    method = ncttt.NCTTT(entropy=0, contrast=1, mirror_mean=False, crop=1.0)
    model = attached("resnet", method, layer="layer2")
    logits, features = model.forward_with_features(images(4))
    method.training_loss(model, images(4), features, logits).backward()
    assert model.classifier.fc.weight.grad is None
    assert model.classifier.layer1[0].weight.grad is not None
    adapter = ncttt.Adapter(model)
    wants = []
    adapter.model.classifier.layer4.register_forward_hook(lambda m, i, o: wants.append(o.requires_grad))
    adapter(images(4))
    assert len(wants) == method.steps + 1
    assert not any(wants)


@pytest.mark.parametrize("conditional", [True, False])
def test_the_entropy_of_the_predictions_is_lowered_beside_equation_nine(conditional):
    alone = ncttt.NCTTT(conditional=conditional, entropy=0, contrast=1, entropy_of="each")
    both = replace(alone, entropy=0.5)
    model = attached("resnet", alone)
    log_probabilities = model(images(4)).log_softmax(1)
    entropy = -(log_probabilities.exp() * log_probabilities).sum() / 4
    expected = alone.adaptation_loss(model, images(4)).loss + 0.5 * entropy
    objective = both.adaptation_loss(model, images(4))
    torch.testing.assert_close(objective.loss, expected)
    objective.loss.backward()
    assert model.classifier.layer1[0].weight.grad.abs().sum() > 0
    assert ncttt.NCTTT.paper_cifar().entropy == ncttt.NCTTT.paper_visda().entropy == 0


@pytest.mark.parametrize("field", ["entropy", "contrast"])
@pytest.mark.parametrize("weight", [-0.1, math.inf, math.nan])
def test_a_weight_of_the_loss_is_finite_and_not_negative(field, weight):
    with pytest.raises(InputError, match=f"{field} must be finite and not negative"):
        ncttt.NCTTT(**{field: weight})


def test_a_step_lowers_something():
    with pytest.raises(InputError, match="found 0 for both"):
        ncttt.NCTTT(entropy=0, contrast=0)


@pytest.mark.parametrize(("below", "pace"), [(0.25, 0.25), (0.8, 0.8), (9.0, 1.0), (-1.0, 0.0)])
def test_the_score_sets_the_size_of_a_step(below, pace):
    """A step of SGD is as long as its rate; a batch that scores like source images takes none."""
    settings = {"optimizer": "sgd", "lr": 1e-2, "crop": 1.0}
    paced, fixed = (attached("resnet", ncttt.NCTTT(step_size=size, **settings)) for size in ("score", "fixed"))
    batch = images(64)
    with statistics(paced.batch_norms(), "batch"):
        logits, features = paced.forward_with_features(torch.cat([batch, batch.flip(3)]))
        score = paced.method.score(paced, features, logits).mean().item()
    paced.branch.source_score.copy_(torch.tensor([score + below * 0.01, 0.01]))
    moved, traces = [], []
    for model in (paced, fixed):
        adapter = ncttt.Adapter(model, protocol="online")
        before = adapter.model.classifier.layer1[0].weight.clone()
        adapter(batch)
        moved.append(adapter.model.classifier.layer1[0].weight - before)
        traces.append(adapter.trace)
    torch.testing.assert_close(moved[0], pace * moved[1], rtol=1e-2, atol=1e-7)
    assert (traces[0].steps, traces[0].stopped) == ((1, "steps") if pace else (0, "source level"))
    assert traces[1].steps == 1


def test_steps_are_fixed_before_calibration():
    model, batch = attached("resnet", ncttt.NCTTT()), images(64)
    fixed = attached("resnet", ncttt.NCTTT(step_size="fixed"))
    assert torch.equal(ncttt.Adapter(model)(batch), ncttt.Adapter(fixed)(batch))


def test_whitening_takes_half_precision_rows():
    layer = Whiten(4)
    rows = torch.randn(64, 4)
    exact = Whiten(4)(rows)
    torch.testing.assert_close(layer(rows.to(torch.bfloat16)).float(), exact, rtol=0.1, atol=0.1)


def test_a_branch_that_cannot_tell_source_images_does_not_end_the_steps():
    model, digits = ncttt.load("digits-small-ncttt"), ncttt.data.load("digits", "val")
    batches = list(ncttt.data.batches(digits, 100))
    model.calibrate(batches)
    assert model.branch.shuffled_score < model.method.source_level(model, 16)  # a trained branch can tell them
    assert model.method.tells_source(model)
    for parameter in model.branch.heads[0].discriminator[2].parameters():
        parameter.data.zero_()  # one that has learned nothing gives everything the same score
    model.calibrate(batches)
    model.source_certainty.copy_(torch.tensor([2.0, 0.0]))  # no batch is left to the source
    with pytest.warns(
        UserWarning,
        match="NCTTT cannot stop at the source's level, so batches that are not left to the source take all",
    ):
        adapter = ncttt.Adapter(model, stop="source")
    noise = torch.rand(16, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    assert torch.equal(adapter(noise), ncttt.Adapter(model)(noise))
    assert (adapter.trace.stopped, adapter.trace.steps) == ("no source level", model.method.steps)
    model.forget()
    assert model.method.tells_source(model)  # as far as anybody knows


def test_preserving_noise_keeps_the_variance_and_labels_by_both_densities():
    """Whitened features keep unit covariance in both views; labels are the posterior by torch.distributions."""
    torch.manual_seed(0)
    method = ncttt.NCTTT(variance="preserved", sigma_in=0.3, sigma_out=0.8, views=2)
    projected = torch.randn(500, 4, 16)
    noise = torch.cat([sigma * torch.randn(2, *projected.shape) for sigma in (0.3, 0.8)])
    views, labels = method._views_and_labels(projected, noise)
    for view in views:
        torch.testing.assert_close(view.flatten(0, 1).T.cov(), torch.eye(16), rtol=0, atol=0.15)
    inner = torch.distributions.Normal(math.sqrt(1 - 0.3**2) * projected, 0.3)
    outer = torch.distributions.Normal(math.sqrt(1 - 0.8**2) * projected, 0.8)
    posterior = (inner.log_prob(views).sum(-1) - outer.log_prob(views).sum(-1)).sigmoid()
    torch.testing.assert_close(labels, posterior, rtol=1e-3, atol=1e-4)
    assert labels[:2].mean() > 0.9 > 0.1 > labels[2:].mean()


def test_preserving_noise_without_inner_noise_labels_views_one_and_zero():
    method = ncttt.NCTTT(variance="preserved", sigma_in=0.0, sigma_out=0.7)
    projected = torch.randn(8, 4, 16)
    views, labels = method._views_and_labels(projected, torch.cat([torch.zeros(1, 8, 4, 16), torch.randn(1, 8, 4, 16)]))
    assert labels[0].eq(1).all()
    assert labels[1].eq(0).all()
    torch.testing.assert_close(views[0], projected, rtol=0, atol=0)


def test_preserving_noise_trains_and_has_no_more_than_unit_variance():
    method = ncttt.NCTTT(variance="preserved", sigma_in=0.0, sigma_out=0.7, hidden=16)
    case = Case("resnet", method)
    logits, features = case.model.train().forward_with_features(images(8))
    loss = method.training_loss(case.model, images(8), features, logits)
    loss.backward()
    assert loss.isfinite()
    with pytest.raises(InputError, match="sigma_out <= 1"):
        ncttt.NCTTT(variance="preserved", sigma_in=0.5, sigma_out=1.5)


def test_the_fast_preset_learns_from_one_small_crop():
    fast = ncttt.NCTTT.fast(hidden=32)
    assert (fast.copies, fast.hidden) == (1, 32)
    assert fast == replace(ncttt.NCTTT(hidden=32), copies=1, crop=fast.crop)
    assert fast.crop < ncttt.NCTTT().crop
