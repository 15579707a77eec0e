"""Joint training: one pass, both losses fall, the branch learns, the result is reproducible."""

from functools import partial

import pytest
import tiny
import torch
from torch.nn import functional as F

import ncttt
from ncttt import InputError
from ncttt.data import load
from ncttt.testing.cases import attached
from ncttt.training import Epoch, Observer
from ncttt.training.epoch import held_out_metrics
from ncttt.training.joint import JointLoss
from ncttt.training.stepping import Stepper


class Seen(Observer):
    def __init__(self) -> None:
        self.epochs: list[Epoch] = []
        self.steps: list[int] = []
        self.ended = 0

    def step(self, step: int, figures: torch.Tensor, images: int) -> None:
        self.steps.append(step)

    def epoch(self, epoch: Epoch) -> None:
        self.epochs.append(epoch)

    def end(self) -> None:
        self.ended += 1


def test_both_losses_fall_the_held_out_part_is_watched_and_calibrates():
    model, seen = tiny.model(), Seen()
    history = ncttt.train(
        model,
        load("digits", "fit"),
        epochs=4,
        batch_size=32,
        auxiliary_weight=1.0,
        held_out=load("digits", "val"),
        observers=[seen],
    )
    assert history == seen.epochs
    assert [epoch.number for epoch in history] == [1, 2, 3, 4]
    assert seen.steps == list(range(1, 4 * 36 + 1))
    assert seen.ended == 1
    assert history[-1].cross_entropy < history[0].cross_entropy
    assert history[-1].auxiliary < history[0].auxiliary
    assert history[-1].held_out["accuracy"] > 0.3
    assert history[-1].held_out["in_out_accuracy"] > 0.6
    assert model.branch.source_score[0] > 0.5
    assert not model.training


def test_training_is_reproducible_and_leaves_the_global_generator_alone():
    models = [tiny.model(), tiny.model(), tiny.model()]
    state = torch.get_rng_state()
    for model, seed in zip(models, (5, 5, 6), strict=True):
        ncttt.train(model, tiny.digits(), epochs=1, batch_size=32, augment="pad_crop_flip", seed=seed, observers=[])
    assert torch.equal(torch.get_rng_state(), state)
    assert tiny.same_weights(models[0], models[1])
    assert not tiny.same_weights(models[0], models[2])


def test_one_pass_through_the_encoder_serves_both_losses():
    model = attached("resnet", ncttt.NCTTT(hidden=16)).train()
    passes = []
    next(model.classifier.children()).register_forward_hook(lambda m, i, o: passes.append(len(o)))
    stepper = Stepper(model, ncttt.Recipe(), steps_per_epoch=1)
    stepper.prepare()
    stepper.step(0, torch.rand(8, 3, 16, 16), torch.randint(5, (8,)))
    assert passes == [8]


def test_the_loss_is_the_weighted_sum():
    model = tiny.model().train()
    images, labels = torch.rand(6, 3, 32, 32), torch.randint(10, (6,))
    recipe = ncttt.Recipe(auxiliary_weight=0.7, label_smoothing=0.1)
    torch.manual_seed(1)
    loss, figures = JointLoss(model, recipe)(images, labels)
    torch.manual_seed(1)
    logits, features = model.forward_with_features(images)
    auxiliary = model.method.training_loss(model, images, features, logits)
    expected = F.cross_entropy(logits, labels, label_smoothing=0.1) + 0.7 * auxiliary
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(figures[0] + 0.7 * figures[1], loss)


def test_branch_only_leaves_the_classifier_as_it_was():
    model = tiny.model()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    history = ncttt.train(model, tiny.digits(), epochs=6, batch_size=32, branch="only", branch_lr=0.01, observers=[])
    after = model.state_dict()
    moved = {name.split(".")[0] for name in after if not torch.equal(before[name], after[name])}
    assert moved == {"branch"}
    assert history[-1].auxiliary < history[0].auxiliary
    assert all(parameter.requires_grad for parameter in model.parameters())


def test_branch_only_needs_a_branch():
    model = ncttt.attach(ncttt.models.small(width=4), "layer2", ncttt.Source(), torch.rand(2, 3, 32, 32))
    with pytest.raises(InputError, match="Source has none"):
        ncttt.train(model, tiny.digits(), branch="only", observers=[])


def test_a_method_without_branch_trains_the_classifier():
    model = ncttt.attach(ncttt.models.small(width=4), "layer2", ncttt.Source(), torch.rand(2, 3, 32, 32))
    history = ncttt.train(model, tiny.digits(), epochs=3, batch_size=16, observers=[])
    assert history[-1].cross_entropy < history[0].cross_entropy
    assert history[-1].auxiliary == 0


@pytest.mark.parametrize(
    "settings",
    [
        {"optimizer": "adamw", "lr": 1e-3},
        {"optimizer": "adam", "lr": 1e-3, "schedule": "cosine"},
        {"schedule": "multi_step", "milestones": [1, 2], "lr": 0.02},
        {"schedule": "constant", "lr": 0.02, "clip": 1.0},
        {"branch_optimizer": "sgd", "branch_lr": 0.1, "label_smoothing": 0.1, "lr": 0.02},
        {"augment": "pad_crop_flip_cutout", "lr": 0.02},
        {"augment": lambda images: images.flip(3), "workers": 2, "lr": 0.02},
    ],
)
def test_settings_train(settings):
    history = ncttt.train(tiny.model(), tiny.digits(), epochs=3, batch_size=32, observers=[], **settings)
    assert history[-1].cross_entropy < history[0].cross_entropy


def test_a_date_can_be_the_seed():
    assert len(ncttt.train(tiny.model(), tiny.digits(32), epochs=1, batch_size=32, seed=20261116, observers=[])) == 1


def test_compiled_parts_take_the_steps_of_eager_ones(monkeypatch):
    # Without the code generator, which takes a minute and is PyTorch's own.
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="aot_eager"))
    eager, compiled = tiny.model(), tiny.model()
    settings = {"epochs": 2, "batch_size": 32, "lr": 1e-3, "observers": []}
    expected = ncttt.train(eager, tiny.digits(96), **settings)
    history = ncttt.train(compiled, tiny.digits(96), compile=True, **settings)
    for one, two in zip(expected, history, strict=True):
        assert two.cross_entropy == pytest.approx(one.cross_entropy, rel=1e-3)
        assert two.auxiliary == pytest.approx(one.auxiliary, rel=1e-3)
    assert not any("forward" in vars(module) for module in compiled.modules())


def test_clipping_bounds_the_step():
    moved = []
    for clip in (1e-4, None):
        model = tiny.model()
        before = model.classifier.fc.weight.detach().clone()
        settings = {"momentum": 0.0, "weight_decay": 0.0, "schedule": "constant", "lr": 1.0}
        ncttt.train(model, tiny.digits(32), epochs=1, batch_size=32, clip=clip, observers=[], **settings)
        moved.append((model.classifier.fc.weight - before).norm().item())
    assert moved[0] <= 1e-4 < moved[1]


def test_what_does_not_fit_is_refused():
    data = load("digits", "fit")
    with pytest.raises(InputError, match="epochs must be positive; found 0"):
        ncttt.train(tiny.model(), data, epochs=0)
    with pytest.raises(InputError, match="1167 images give no batch of 5000"):
        ncttt.train(tiny.model(), data, epochs=1, batch_size=5000)
    with pytest.raises(InputError, match="5 classes, but digits fit has 10"):
        ncttt.train(attached("resnet", ncttt.NCTTT()), data, epochs=1)
    with pytest.raises(InputError, match="no setting 'epoch'; did you mean 'epochs'"):
        ncttt.train(tiny.model(), data, epoch=1)
    with pytest.raises(InputError, match="no optimizer 'sdg'; did you mean 'sgd'"):
        ncttt.train(tiny.model(), data, optimizer="sdg")
    with pytest.raises(InputError, match="precision='bfloat16' is for GPUs"):
        ncttt.train(tiny.model(), data, precision="bfloat16")
    with pytest.raises(InputError, match="compile and synchronise do not go together"):
        ncttt.train(tiny.model(), data, compile=True, synchronise=True)
    other = ncttt.data.ImageSet(data.images, data.labels, tuple("abcdefghij"), "letters")
    with pytest.raises(InputError, match="the classes of letters are not those of digits fit"):
        ncttt.train(tiny.model(), data, held_out=other)
    with pytest.raises(InputError, match="resuming needs the folder"):
        ncttt.train(tiny.model(), data, resume=True)


def test_images_are_shrunk_in_the_first_part_of_a_training_alone():
    model, sizes = tiny.model().train(), []
    model.classifier.register_forward_pre_hook(lambda net, given: sizes.append(tuple(given[0].shape[2:])))
    stepper = Stepper(model, ncttt.Recipe(epochs=2, shrink=24, shrink_until=0.5), steps_per_epoch=2)
    stepper.prepare()
    for number in range(4):
        stepper.step(number, torch.rand(4, 3, 32, 32), torch.randint(10, (4,)))
    assert sizes == [(24, 24), (24, 24), (32, 32), (32, 32)]


def test_a_size_to_shrink_to_is_positive():
    with pytest.raises(InputError, match="shrink must be a size in pixels, or none; found 0"):
        ncttt.Recipe(shrink=0)


def test_fast_changes_nothing_on_a_processor():
    models = [tiny.model(), tiny.model()]
    before = torch.backends.cudnn.benchmark
    for model, fast in zip(models, (False, True), strict=True):
        ncttt.train(model, tiny.digits(), epochs=1, batch_size=32, observers=tiny.QUIET, fast=fast)
    assert tiny.same_weights(*models)
    assert torch.backends.cudnn.benchmark == before


def test_fast_kernels_are_on_during_the_steps(monkeypatch):
    from ncttt.training import loop

    fast_kernels, seen = loop.fast_kernels, []
    monkeypatch.setattr(loop, "fast_kernels", lambda on, device: fast_kernels(on, "cuda"))  # flags alone need no GPU
    watching = tiny.At(1, lambda: seen.append(torch.backends.cudnn.benchmark))
    ncttt.train(tiny.model(), tiny.digits(), epochs=1, batch_size=32, observers=[watching], fast=True)
    assert (seen, torch.backends.cudnn.benchmark) == ([True], False)


def test_a_training_of_few_epochs_is_stable():
    """A steep rise of the rate makes the first epoch's loss 5.7, and the model no better than 24 %."""
    torch.manual_seed(0)
    data, test = load("digits", "fit"), load("digits", "test")
    net = ncttt.models.small(num_classes=10, width=8)
    model = ncttt.attach(net, "layer3", ncttt.NCTTT(), torch.rand(2, 3, 32, 32))
    history = ncttt.train(model, data, epochs=4, batch_size=64, lr=0.1, auxiliary_weight=1.0, observers=tiny.QUIET)
    assert history[0].cross_entropy < 2.6
    assert held_out_metrics(model, test, 250)["accuracy"] > 0.9


def test_the_running_statistics_of_a_short_training_hold_nothing_of_their_initial_values():
    """After so few steps a tenth at a time leaves 35 % of them; here they are an average of the batches."""
    model = tiny.model()
    for layer in model.batch_norms():
        layer.running_var.fill_(1e6)
    ncttt.train(model, tiny.digits(), epochs=1, batch_size=32, observers=tiny.QUIET)
    assert all(layer.running_var.max() < 1e4 for layer in model.batch_norms())
    assert all(layer.momentum == 0.1 for layer in model.batch_norms())
