"""Recommended settings at batches of 1, 8 and 128 on clean images, and the warning for batches that are too small."""

import warnings

import pytest
import torch
from torch import Tensor

import ncttt
from ncttt.adapt import SmallBatchWarning
from ncttt.adapt.small_batches import ALONE, FEW, STREAM
from ncttt.cli import main
from ncttt.testing.cases import Case, images, never, resnet

ONLINE = {"protocol": "online", "steps": 2, "lr": 1e-3}
# What the README and docs/ recommend: (method, or the model's own, and the adapter's arguments).
RECOMMENDED = {
    "the ten lines, ncttt adapt": (None, {"stop": "source"}),
    "a stream": (None, {**ONLINE, "stop": "source"}),
    "a stream of statistics": (ncttt.PTBN(), {"protocol": "online", "stop": "source"}),
    "TENT in a stream": (ncttt.Tent(), {"protocol": "online", "stop": "source"}),
    "a plain network": (ncttt.PTBN(norm="blend(0.1)"), {}),
}
SIZES = (1, 8, 128)


def accuracy(adapter: ncttt.Adapter, pixels: Tensor, labels: Tensor, size: int) -> float:
    parts = zip(pixels.split(size), labels.split(size), strict=True)
    return sum(int((adapter(part).argmax(1) == truth).sum()) for part, truth in parts) / len(labels)


def loss_on_clean(checkpoint: str, data: ncttt.data.ImageSet, setting: str, size: int) -> float:
    """What a recommended setting loses against the source model."""
    model = ncttt.load(checkpoint)
    method, arguments = RECOMMENDED[setting]
    ((pixels, labels),) = ncttt.data.batches(data, len(data))
    with warnings.catch_warnings():
        warnings.simplefilter("error", SmallBatchWarning)  # what is recommended is not warned of
        after = accuracy(ncttt.Adapter(model, method, **arguments), pixels, labels, size)
    return accuracy(ncttt.Adapter(model, ncttt.Source()), pixels, labels, 128) - after


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("setting", RECOMMENDED)
def test_recommended_settings_are_safe_on_clean_digits(setting, size):
    assert (
        loss_on_clean("digits-small-ncttt", ncttt.data.load("digits", "test").subset(range(300)), setting, size) <= 0.01
    )


@pytest.mark.network
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("setting", RECOMMENDED)
def test_recommended_settings_are_safe_on_clean_photographs(cifar10_root, setting, size):
    data = ncttt.data.load("cifar10", "test", cifar10_root).subset(range(1000))
    assert loss_on_clean("cifar10-small-ncttt", data, setting, size) <= 0.01


@pytest.mark.parametrize(
    ("method", "arguments", "remedy"),
    [
        (ncttt.PTBN(), {}, r"norm='blend\(0.2\)'"),
        (ncttt.Tent(), {}, r"norm='blend\(0.2\)' with steps=0"),
        (ncttt.Tent(), {"norm": "source", "protocol": "online"}, "the steps on a batch of 8"),
        (ncttt.PTBN(), {"protocol": "online"}, r"norm='stream\(0.01\)'"),
        (ncttt.Tent(), {"protocol": "online"}, r"gather=64 and norm=\('batch', 'stream\(0.01\)'\)"),
    ],
)
def test_a_small_batch_is_warned_of_once_with_a_remedy(method, arguments, remedy):
    adapter = ncttt.Adapter(resnet(), method, **arguments)
    with pytest.warns(SmallBatchWarning, match=remedy):
        adapter(images(8))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        adapter(images(8))


def test_the_remedies_of_a_stream_are_not_warned_of():
    remedies = [(ncttt.Tent(), {"steps": 0, "norm": STREAM}), (ncttt.Tent(gather=64, norm=("batch", STREAM)), {})]
    for method, arguments in remedies:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = ncttt.attach(resnet(), None, method, images(8))
            ncttt.Adapter(model, protocol="online", **arguments)(images(8))


@pytest.mark.parametrize("norm", ["source", "blend(0.1)", "prior(16)", "instance(4)", "stream(0.01)", "window(64)"])
@pytest.mark.parametrize("size", [1, 8, 40])
def test_safe_statistics_are_not_warned_of(norm, size):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ncttt.Adapter(resnet(), ncttt.PTBN(norm=norm))(images(size))
        ncttt.Adapter(resnet(), ncttt.PTBN())(images(64))


def gated(protocol: str, **settings: object) -> tuple[ncttt.Adapter, Case]:
    """An adapter whose gate leaves nothing to the source."""
    case = Case("resnet", ncttt.NCTTT(conditional=False, hidden=32, copies=1, mirror_mean=False))
    never(case.model)
    return case.adapter(stop="source", protocol=protocol, **settings), case


@pytest.mark.parametrize(("protocol", "policy"), [("episodic", ALONE), ("online", STREAM), ("continual", STREAM)])
def test_behind_the_gate_few_images_get_statistics_of_their_size_and_no_steps(protocol, policy):
    adapter, case = gated(protocol)
    same = ncttt.Adapter(case.model, ncttt.PTBN(norm=policy), protocol=protocol)
    for count in (1, 3, FEW - 1):
        assert torch.equal(adapter(images(count, count)), same(images(count, count)))
        assert (adapter.trace.steps, adapter.trace.stopped) == (0, "nothing to learn")
    adapter(images(FEW))
    assert adapter.trace.steps == 3


def test_behind_the_gate_a_stream_of_small_batches_learns_with_the_statistics_of_the_stream():
    adapter, case = gated("online")
    same = case.adapter(norm=STREAM, protocol="online")
    for seed in range(2):
        assert torch.equal(adapter(images(20, seed)), same(images(20, seed)))
    assert adapter.trace.steps == 3


@pytest.mark.parametrize("protocol", ["episodic", "online"])
def test_large_batches_behind_the_gate_are_as_ever(protocol):
    adapter, case = gated(protocol)
    assert torch.equal(adapter(images(64)), case.adapter(protocol=protocol)(images(64)))


def test_what_small_batches_moved_is_forgotten_and_baked():
    adapter, _ = gated("online")
    first = adapter(images(3))
    second = adapter(images(3))
    assert not torch.equal(first, second)
    torch.testing.assert_close(adapter.bake()(images(3)), second, rtol=1e-4, atol=1e-5)
    adapter.new_domain()
    assert torch.equal(adapter(images(3)), first)


@pytest.mark.parametrize("norm", ["blend(0.1)", ("batch", "source"), ("source", "batch")])
def test_small_shares_and_pairs_of_a_method_stay_what_they_are(norm):
    case = Case("resnet", ncttt.NCTTT(conditional=False, hidden=32, copies=1, mirror_mean=False, norm=norm))
    never(case.model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given = case.adapter(stop="source", protocol="online")(images(2))
        kept = {"blend(0.1)": norm, ("batch", "source"): "source"}.get(norm, STREAM)
        assert torch.equal(given, ncttt.Adapter(case.model, ncttt.PTBN(norm=kept), protocol="online")(images(2)))


def test_a_chosen_policy_is_kept_behind_the_gate_and_warned_of():
    case = Case("resnet", ncttt.PTBN())
    never(case.model)
    with pytest.warns(SmallBatchWarning, match="norm='batch' on a batch of 1 "):
        logits = case.adapter(stop="source", norm="batch")(images(1))
    with pytest.warns(SmallBatchWarning):
        assert torch.equal(logits, case.adapter()(images(1)))


def test_the_command_says_it_in_one_line_and_takes_the_remedy(tmp_path, capsys):
    from PIL import Image

    data = ncttt.data.load("digits", "test")
    (tmp_path / "one").mkdir()
    Image.fromarray(data.images[0]).save(tmp_path / "one" / "0.png")
    asked = ["adapt", "--model", "digits-small-ncttt", "--images", str(tmp_path / "one"), "--out"]
    asked += [str(tmp_path / "out.csv"), "--stop", "none", "--overwrite"]
    assert main([*asked, "--method", "ptbn"]) == 0
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "batch of 1 " in line]
    assert line.startswith("ncttt: norm='batch' on a batch of 1 can make the model worse")
    assert main([*asked, "--method", "ptbn", "--norm", "blend(0.1)"]) == 0
    assert "batch of 1 " not in capsys.readouterr().err


def test_the_warning_points_at_the_line_that_called():
    adapter = ncttt.Adapter(ncttt.models.small(), ncttt.PTBN())
    with pytest.warns(SmallBatchWarning) as caught:
        adapter(torch.rand(4, 3, 32, 32))
    assert caught[0].filename == __file__
