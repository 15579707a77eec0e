"""ActMAD: against a slow stream, torch-ttt, and what its facts of the source must be."""

import copy
import math
from collections.abc import Iterator
from functools import partial

import pytest
import torch
from torch import Tensor, nn

import ncttt
from ncttt import InputError
from ncttt.methods.settings import method_from, settings_of
from ncttt.testing.cases import CLASSES, attached, images, resnet, vgg
from stream_checks import BATCHES, logits_by

SOURCE = images(20, seed=9)
NORMS = (nn.BatchNorm2d, nn.LayerNorm, nn.GroupNorm)


def model_for(architecture: str) -> ncttt.Branched:
    model = attached(architecture, ncttt.ActMAD()).double()
    model.calibrate(list(SOURCE.double().split(7)))
    return model


def outputs_of(net: nn.Module, image: Tensor) -> list[Tensor]:
    """What the normalisation layers give for one image alone, in the order in which they run."""
    found: list[Tensor] = []
    hooks = [
        part.register_forward_hook(lambda layer, inputs, output: found.append(output[0].clone()))
        for part in net.modules()
        if isinstance(part, NORMS)
    ]
    net(((image.double() - torch.tensor([0.5, 0.4, 0.3]).double()[:, None, None]) / 0.2)[None])
    for hook in hooks:
        hook.remove()
    return found


def slow_moments(net: nn.Module, batch: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Image by image, which is possible because the source's statistics normalise."""
    moments = []
    for values in zip(*[outputs_of(net, image) for image in batch], strict=True):
        mean = sum(values) / len(values)
        moments.append((mean, sum((value - mean) ** 2 for value in values) / (len(values) - 1)))
    return moments  # type: ignore[return-value]


def slow_stream(model: ncttt.Branched, lr: float) -> Iterator[tuple[Tensor, float]]:
    """Logits of each batch after its step, by Nesterov's momentum written out, and the loss before it."""
    net = copy.deepcopy(model.classifier).eval().requires_grad_(True)
    source = [[part.detach() for part in pair] for pair in slow_moments(net, SOURCE)]
    velocity = {name: torch.zeros_like(p) for name, p in net.named_parameters()}
    for batch in BATCHES:
        loss = 0
        for pair, known in zip(slow_moments(net, batch), source, strict=True):
            for mine, other in zip(pair, known, strict=True):
                loss = loss + 0.5 * (mine - other).abs().sum() / mine.numel()
        names, parameters = zip(*net.named_parameters(), strict=True)
        gradients = torch.autograd.grad(loss, parameters, allow_unused=True)  # type: ignore[arg-type]
        with torch.no_grad():
            for name, parameter, gradient in zip(names, parameters, gradients, strict=True):
                if gradient is not None:
                    velocity[name] = 0.9 * velocity[name] + gradient
                    parameter -= lr * (gradient + 0.9 * velocity[name])
            yield logits_by(net, batch), loss.item()  # type: ignore[union-attr]


@pytest.mark.parametrize("architecture", ["resnet", "vgg", "vit"])
def test_it_equals_a_slow_stream(architecture):
    model = model_for(architecture)
    for mine, (mean, variance) in zip(model.branch.each(), slow_moments(model.classifier, SOURCE), strict=True):
        torch.testing.assert_close(mine.mean, mean.detach())
        torch.testing.assert_close(mine.variance, variance.detach())
    adapter = ncttt.Adapter(model, protocol="online")
    for batch, (logits, loss) in zip(BATCHES, slow_stream(model, lr=1e-2), strict=True):
        torch.testing.assert_close(adapter(batch.double()), logits)
        assert adapter.trace.losses == pytest.approx([loss])


def test_the_facts_do_not_depend_on_how_images_are_batched():
    torch.manual_seed(0)
    net = resnet().eval()
    facts = [ncttt.calibrated(net, ncttt.ActMAD(), list(SOURCE.split(size))).branch.state_dict() for size in (20, 3, 1)]
    for other in facts[1:]:
        for name, value in facts[0].items():
            torch.testing.assert_close(other[name], value)


@pytest.mark.parametrize("steps", [1, 3])
def test_it_moves_weights_where_torch_ttt_moves_them(steps):
    """Its engine adds what ours averages over means and variances, which Adam does not tell at half the epsilon.

    It reads what an in-place activation has left of the outputs, so the network has none.
    """
    pytest.importorskip("torch_ttt")
    from test_peers import peer_engine

    torch.manual_seed(0)
    net, source = vgg().eval().double(), list(SOURCE.double().split(5))  # an absolute value makes much of rounding
    names = [name for name, part in net.named_modules() if isinstance(part, nn.BatchNorm2d)]
    options = {"lr": 1e-3, "num_steps": steps, "copy_model": False, "optimizer_name": "adam"}
    engine = peer_engine("actmad")(copy.deepcopy(net), names, options)
    engine.compute_statistics([(part,) for part in source])
    theirs, loss = engine.eval()(images(8).double())
    model = ncttt.calibrated(net, ncttt.ActMAD(), source)
    half = partial(torch.optim.Adam, eps=0.5e-8)
    adapter = ncttt.Adapter(model, optimizer=half, lr=1e-3, steps=steps, protocol="online")
    ours = adapter(images(8).double())
    assert 2 * adapter.trace.losses[-1] == pytest.approx(loss.item())
    torch.testing.assert_close(ours, theirs)
    for mine, other in zip(adapter.model.classifier.parameters(), engine.model.parameters(), strict=True):
        torch.testing.assert_close(mine, other)


def test_source_images_themselves_cost_nothing():
    model = model_for("resnet")
    adapter = ncttt.Adapter(model)
    adapter(SOURCE.double())
    assert adapter.trace.losses[0] < 1e-6


def test_one_image_has_no_variance_and_learns_by_its_mean():
    adapter = ncttt.Adapter(model_for("resnet"), protocol="online")
    assert adapter(images(1).double()).isfinite().all()
    outputs = outputs_of(copy.deepcopy(model_for("resnet").classifier).eval(), images(1)[0])
    expected = sum(
        0.5 * (output - known.mean).abs().mean().item()
        for output, known in zip(outputs, model_for("resnet").branch.each(), strict=True)
    )
    assert adapter.trace.losses[0] == pytest.approx(expected)


def test_activations_that_are_changed_in_place_are_read_before():
    def network(inplace: bool) -> nn.Module:
        torch.manual_seed(0)
        head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, CLASSES)]
        return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=inplace), *head).eval()

    results = []
    for inplace in (False, True):
        adapter = ncttt.Adapter(ncttt.calibrated(network(inplace), ncttt.ActMAD(), [SOURCE]))
        results.append((adapter(images(6)), adapter.trace.losses[0]))
    torch.testing.assert_close(results[0][0], results[1][0])
    assert results[0][1] == pytest.approx(results[1][1])


def test_a_network_that_is_not_calibrated_and_images_of_another_size_are_one_error_each():
    with pytest.raises(InputError, match=r"ActMAD needs the moments of activations of the source.*ncttt.calibrated"):
        ncttt.Adapter(resnet(), ncttt.ActMAD())
    adapter = ncttt.Adapter(ncttt.calibrated(resnet(), ncttt.ActMAD(), [SOURCE]))
    with pytest.raises(InputError, match=r"measured on images of shape \(3, 16, 16\).*images of shape \(3, 24, 24\)"):
        adapter(images(4, size=24))
    assert not any(part._forward_hooks for part in adapter.model.modules())


def test_networks_without_normalisation_and_single_source_images_are_refused():
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, CLASSES))
    with pytest.raises(InputError, match="ActMAD compares the outputs of normalisation layers; found none that runs"):
        ncttt.calibrated(net, ncttt.ActMAD(), [SOURCE])
    with pytest.raises(InputError, match="at least two source images; found 1"):
        ncttt.calibrated(resnet(), ncttt.ActMAD(), [SOURCE[:1]])


def test_a_training_forgets_the_facts_and_a_saved_model_has_them(tmp_path):
    model = ncttt.calibrated(ncttt.models.small(num_classes=CLASSES, width=4), ncttt.ActMAD(), [SOURCE])
    ncttt.save(model, tmp_path)
    again = ncttt.load(tmp_path)
    assert torch.equal(ncttt.Adapter(again)(images(4)), ncttt.Adapter(model)(images(4)))
    model.forget()
    assert math.isclose(sum(buffer.abs().sum().item() for buffer in model.branch.buffers()), 0)
    assert not model.calibrated


def test_its_settings_are_read_back():
    assert method_from(settings_of(ncttt.ActMAD(lr=0.1))) == ncttt.ActMAD(lr=0.1)
