"""CoTTA: against a slow stream, its three rules one by one, and its augmentations against plain loops."""

import math

import pytest
import torch
from torch import nn

import ncttt
import teacher_checks
from ncttt import InputError
from ncttt.methods import cotta
from ncttt.methods.settings import method_from, settings_of
from ncttt.methods.shared_augment import blurred, strong_views, warped
from ncttt.methods.shared_colours import gamma
from ncttt.testing.cases import attached, images, resnet


def online(method: ncttt.Method, **settings) -> ncttt.Adapter:
    return ncttt.Adapter(attached("resnet", method), protocol="online", **settings)


def weights(adapter: ncttt.Adapter) -> dict[str, torch.Tensor]:
    return {name: p.detach().clone() for name, p in adapter.model.classifier.named_parameters()}


@pytest.mark.parametrize("architecture", ["resnet", "vgg", "vit"])
@pytest.mark.filterwarnings("ignore:.*has no BatchNorm")
def test_it_equals_a_slow_stream(architecture):
    teacher_checks.check_cotta_equals_a_slow_one(architecture)


def test_views_are_made_only_where_the_source_is_unsure(monkeypatch):
    made = []
    monkeypatch.setattr(cotta, "strong_views", lambda images: made.append(len(images)) or images)
    online(ncttt.CoTTA(threshold=0.0))(images(6))
    assert not made
    online(ncttt.CoTTA(threshold=1.0, views=5))(images(6))
    assert made == [6] * 5


@pytest.mark.parametrize(("threshold", "passes"), [(0.0, 3), (1.0, 2 + 4)])
def test_no_forward_is_made_that_nobody_reads(threshold, passes):
    adapter, count = online(ncttt.CoTTA(threshold=threshold, views=4)), []
    adapter.model.classifier.register_forward_hook(lambda *_: count.append(1))
    adapter(images(6))
    assert len(count) == passes  # student, source, and the teacher once or for each view


def test_weights_go_back_to_the_source_by_chance():
    free, back = online(ncttt.CoTTA(restored=0.0, views=1)), online(ncttt.CoTTA(restored=0.3, views=1))
    source = weights(free)
    for adapter in (free, back):
        adapter(images(6))
    moved, restored = weights(free), weights(back)
    shares = []
    for name, old in source.items():
        is_old = restored[name] == old
        torch.testing.assert_close(restored[name][~is_old], moved[name][~is_old])
        shares.append((is_old & (moved[name] != old)).float())
    share = torch.cat([part.flatten() for part in shares])
    assert abs(share.mean().item() - 0.3) < 4 * math.sqrt(0.3 * 0.7 / len(share)) + 0.01


def test_the_teacher_has_followed_before_weights_go_back():
    free, back = (online(ncttt.CoTTA(restored=share, kept=0.9, views=1)) for share in (0.0, 1.0))
    source = weights(free)
    for adapter in (free, back):
        adapter(images(6))
    assert all(torch.equal(value, source[name]) for name, value in weights(back).items())
    for name, taught in back.model.memory.named().items():
        torch.testing.assert_close(taught, 0.9 * source[name] + 0.1 * weights(free)[name])


def test_the_teacher_predicts():
    adapter = online(ncttt.CoTTA(threshold=0.0, kept=0.5, restored=0.0), lr=1e-2)
    adapter(images(6))
    logits = adapter.predict_at([0], images(6, seed=1))[0]
    net = resnet().eval()
    net.load_state_dict(adapter.model.classifier.state_dict() | adapter.model.memory.named())
    model = ncttt.Branched(net, None, ncttt.PTBN(), mean=(0.5, 0.4, 0.3), std=(0.2, 0.2, 0.2))
    torch.testing.assert_close(logits, ncttt.Adapter(model)(images(6, seed=1)))


def test_a_reset_forgets_the_teacher():
    teacher_checks.check_a_reset_forgets_the_teacher(ncttt.CoTTA(kept=0.5, views=2))


@pytest.mark.parametrize("policy", ["stream(0.05)", "window(9)"])
def test_a_batch_moves_the_statistics_of_a_stream_once(policy):
    many, plain = online(ncttt.CoTTA(views=3), norm=policy), online(ncttt.PTBN(), norm=policy)
    for adapter in (many, plain):
        adapter(images(6))
    for one, other in zip(many.model.classifier.buffers(), plain.model.classifier.buffers(), strict=True):
        torch.testing.assert_close(one, other)


def test_one_image_and_grey_images():
    assert online(ncttt.CoTTA(views=2))(images(1)).isfinite().all()
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3))
    assert ncttt.Adapter(net, ncttt.CoTTA(views=2))(images(3)[:, :1]).isfinite().all()


def test_images_that_were_normalised_outside_are_refused_where_views_are_needed():
    adapter = ncttt.Adapter(resnet(), ncttt.CoTTA())
    with pytest.raises(InputError, match=r"augmentations of CoTTA need images in \[0, 1\]; found -3"):
        adapter(images(4) * 6 - 3)


def test_a_network_without_parameters_is_one_error():
    with pytest.raises(InputError, match="Sequential has no parameters"):
        ncttt.Adapter(nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten()), ncttt.CoTTA())


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"kept": 1.1}, "kept must be"), ({"threshold": -1}, "threshold must be"), ({"views": 0}, "views must be")],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(InputError, match=message):
        ncttt.CoTTA(**settings)


def test_its_settings_are_read_back():
    assert method_from(settings_of(ncttt.CoTTA(views=8))) == ncttt.CoTTA(views=8)


# The augmentations that CoTTA shares with RoTTA.


def test_views_differ_from_image_to_image_and_follow_the_generator():
    same = images(1, size=32).repeat(8, 1, 1, 1)
    views = strong_views(same, torch.Generator().manual_seed(3))
    assert views.shape == same.shape
    assert views.min() >= 0
    assert views.max() <= 1
    assert len({tuple(view.flatten().tolist()) for view in views}) == 8
    assert torch.equal(strong_views(same, torch.Generator().manual_seed(3)), views)
    assert strong_views(same.half()).dtype == torch.float16


def test_a_warp_takes_each_pixel_from_where_it_was():
    """Pixel by pixel and bilinearly, as text books say, on an image that is not square."""
    picture = torch.rand(1, 1, 6, 10, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    angle, shift, scale = 0.2, (0.05, -0.1), 1.1
    one = [torch.tensor([value], dtype=torch.float64) for value in (angle, scale)]
    for mirrored in (False, True):
        given = warped(picture, one[0], torch.tensor([shift]).double(), one[1], torch.tensor([mirrored]))[0, 0]
        for row in range(6):
            for column in range(10):
                x, y = (9 - column if mirrored else column) - 4.5 - 10 * shift[0], row - 2.5 - 6 * shift[1]
                left = (math.cos(angle) * x + math.sin(angle) * y) / scale + 4.5
                top = (-math.sin(angle) * x + math.cos(angle) * y) / scale + 2.5
                assert given[row, column].item() == pytest.approx(bilinear(picture[0, 0], top, left), abs=1e-6)


def bilinear(picture: torch.Tensor, top: float, left: float) -> float:
    top, left = min(max(top, 0), 5), min(max(left, 0), 9)
    total = 0.0
    for row in range(6):
        for column in range(10):
            total += picture[row, column].item() * max(0, 1 - abs(row - top)) * max(0, 1 - abs(column - left))
    return total


def test_a_blur_is_a_gaussian_of_each_image_s_own_width():
    pictures = torch.rand(2, 2, 7, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    sigmas = [0.5, 0.3]
    given = blurred(pictures, torch.tensor(sigmas).double())
    for image, sigma in enumerate(sigmas):
        taps = [math.exp(-(place**2) / (2 * sigma**2)) for place in range(-2, 3)]
        for row in range(2, 5):
            for column in range(2, 4):
                values = [
                    taps[i] * taps[j] * pictures[image, 0, row + i - 2, column + j - 2].item() / sum(taps) ** 2
                    for i in range(5)
                    for j in range(5)
                ]
                assert given[image, 0, row, column].item() == pytest.approx(sum(values), abs=1e-6)
    torch.testing.assert_close(blurred(pictures, torch.tensor([0.001, 0.001]).double()), pictures)


def test_gamma_is_a_power():
    torch.testing.assert_close(
        gamma(torch.full((2, 3, 1, 1), 0.5), torch.tensor([1.0, 2.0]))[:, 0, 0, 0], torch.tensor([0.5, 0.25])
    )
