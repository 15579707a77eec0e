"""Collapse: the judgement, what each policy does, three disasters, and healthy streams that notice nothing."""

import math
import threading
import warnings
from dataclasses import dataclass

import pytest
import torch

import ncttt
from contract import PrototypeToy
from ncttt import InputError
from ncttt.adapt.collapse import CHANCE, MARGIN, MENDED, WINDOW, judged, sums_of
from ncttt.adapt.watch import REST, CollapseWarning
from ncttt.data.orders import order_of
from ncttt.methods import METHODS
from ncttt.model.norm import statistics
from ncttt.testing.cases import CLASSES, Case, assert_same, fingerprint, images

pytestmark = pytest.mark.filterwarnings("ignore::ncttt.adapt.SmallBatchWarning")
HARM = {"lr": 10.0, "steps": 3}  # after a step of this size the predictions are another model's


def confident(method=None, **settings) -> ncttt.Adapter:
    """An adapter of a model that is sure of its classes."""
    return Case("resnet", method or ncttt.Tent(), confident=True).adapter(**settings)


def everything(adapter: ncttt.Adapter) -> dict:
    """All that an adapter's batches could change."""
    return fingerprint(adapter.model) | {f"live {k}": v.clone() for k, v in adapter._state.snapshot.live.items()}


def unadapted(adapter: ncttt.Adapter, batch: torch.Tensor) -> torch.Tensor:
    with torch.no_grad(), adapter._state.snapshot.saved(), statistics(adapter.model.batch_norms(), "batch"):
        return adapter.model(batch)


def random_logits(count: int, scale: float = 3.0, seed: int = 0) -> torch.Tensor:
    return scale * torch.randn(count, CLASSES, generator=torch.Generator().manual_seed(seed))


def drawn(logits: torch.Tensor, seed: int) -> torch.Tensor:
    """Logits of predictions that are drawn from the probabilities of others, as true classes are."""
    classes = logits.softmax(1).multinomial(1, generator=torch.Generator().manual_seed(seed))[:, 0]
    return 9.0 * torch.nn.functional.one_hot(classes, CLASSES).float()


def test_sums_are_those_of_a_slow_loop():
    before, after = random_logits(7), random_logits(7, seed=1)
    found = torch.zeros(6 + 2 * CLASSES)
    for one, other in zip(before.softmax(1).tolist(), after.softmax(1).tolist(), strict=True):
        top, chosen = one.index(max(one)), other.index(max(other))
        mean = sum(p * (one[top] - p) for p in one)
        found[:3] += torch.tensor([1.0, top == chosen, one[top] - one[chosen]])
        found[3] += mean
        found[4] += sum(p * (one[top] - p - mean) ** 2 for p in one)
        found[5] += sum(p * math.log(p) for p in one) - sum(p * math.log(p) for p in other)
        found[6 + top] += 1
        found[6 + CLASSES + chosen] += 1
    torch.testing.assert_close(sums_of(before, after), found)


def test_equal_predictions_have_no_regret():
    logits = random_logits(50)
    verdict = judged(sums_of(logits, logits))
    assert verdict[:2] == (1.0, 0.0)
    assert (verdict.class_shift, verdict.entropy, verdict.collapsed) == (0.0, 0.0, False)


def test_the_bound_is_bernsteins():
    verdict = judged(torch.tensor([100.0, 60.0, 30.0, 12.0, 5.0, -20.0, 50.0, 50.0, 90.0, 10.0]))
    over = 100 * (verdict.allowed - MARGIN) - MENDED * 12
    assert math.exp(-(over**2) / (2 * 5 + 2 * over / 3)) == pytest.approx(math.exp(-CHANCE))
    assert (verdict.agreement, verdict.regret, verdict.class_shift, verdict.entropy) == (0.6, 0.3, 0.4, -0.2)


def test_a_model_that_mends_half_of_the_errors_seldom_looks_like_collapse():
    logits = random_logits(WINDOW, scale=1.5)
    mended = [torch.where(torch.arange(WINDOW)[:, None] % 2 == 0, logits, drawn(logits, seed)) for seed in range(200)]
    assert sum(judged(sums_of(logits, each)).collapsed for each in mended) <= 200 * math.exp(-CHANCE)


@pytest.mark.parametrize("scale", [1.0, 3.0])
def test_one_class_for_all_and_chance_are_collapse(scale):
    logits = random_logits(WINDOW, scale=scale)
    one_class = torch.zeros(WINDOW, CLASSES).index_fill(1, torch.tensor([2]), 9.0)
    assert judged(sums_of(logits, one_class)).collapsed
    assert judged(sums_of(logits, logits.roll(1, 0))).collapsed


def test_a_shift_of_labels_alone_is_no_collapse():
    """Both models see the same images, so that a stream of one class is nothing to them."""
    logits = random_logits(WINDOW) + torch.tensor([8.0, 0.0, 0.0, 0.0, 0.0])
    assert not judged(sums_of(logits, logits + 0.3 * random_logits(WINDOW, seed=1))).collapsed


def test_one_image_is_too_few():
    sure = torch.tensor([[20.0, 0.0]])
    assert not judged(sums_of(sure, -sure)).collapsed
    assert judged(10 * sums_of(sure, -sure)).collapsed


@pytest.mark.parametrize("protocol", ["episodic", "online", "continual"])
@pytest.mark.parametrize("policy", ["reset", "freeze"])
def test_a_collapsed_batch_is_predicted_without_its_steps(protocol, policy):
    adapter = confident(protocol=protocol, on_collapse=policy, **HARM)
    for seed in range(3):
        batch = images(48, seed)
        assert torch.equal(adapter(batch), unadapted(adapter, batch))
    resting = protocol != "episodic"
    assert adapter.trace.stopped == ("resting" if resting else "collapsed")
    assert adapter.trace.collapsed is not resting


def test_a_reset_begins_at_the_source_and_learns_again_after_a_rest():
    adapter = confident(protocol="online", on_collapse="reset", lr=1e8, steps=3)  # harmful at a millionth, too
    source = fingerprint(adapter.model)
    told = []
    for seed in range(130):
        adapter(images(32, seed))
        told.append(adapter.trace.stopped)
        assert_same(source, fingerprint(adapter.model))
    rest = REST // 32
    assert told[: 2 * rest] == (["collapsed"] + ["resting"] * rest + ["collapsed"] + ["resting"] * 2 * rest)[: 2 * rest]
    assert [number for number, word in enumerate(told) if word == "collapsed"] == [
        0,
        rest + 1,
        3 * rest + 2,
        7 * rest + 3,
    ]


def rate_after(adapter: ncttt.Adapter, batches: int) -> float:
    """The learning rate of the last of so many batches that were learned from."""
    while batches:
        adapter(images(48, adapter._state.batches))
        batches -= adapter.trace.stopped != "resting"
    return adapter._optimizer.param_groups[0]["lr"]


def test_each_collapse_leaves_a_hundredth_of_the_rate_until_a_reset():
    adapter, other = (confident(protocol="online", on_collapse="reset", lr=1e8, steps=3) for _ in range(2))
    assert rate_after(adapter, 1) == 1e8
    assert rate_after(adapter, 2) == pytest.approx(1e4)
    assert adapter.watch.collapses == 3
    other.load_state_dict(adapter.state_dict())
    assert rate_after(other, 1) == pytest.approx(1e2)
    adapter.reset()
    assert rate_after(adapter, 1) == 1e8


def test_frozen_is_until_a_reset():
    adapter = confident(protocol="online", on_collapse="freeze", **HARM)
    adapter(images(48))
    for seed in range(20):
        adapter(images(48, seed))
        assert adapter.trace.stopped == "resting"
    adapter.new_domain()
    adapter(images(48))
    assert adapter.trace.stopped == "collapsed"


def test_a_warning_comes_once_and_changes_nothing():
    plain, told = (confident(protocol="online", on_collapse=policy, **HARM) for policy in (None, "warn"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for seed in range(3):
            assert torch.equal(told(images(48, seed)), plain(images(48, seed)))
            assert told.trace.collapsed
    found = [str(each.message) for each in caught if each.category is CollapseWarning]
    assert len(found) == 1
    assert "on_collapse='reset'" in found[0]


@pytest.mark.parametrize("policy", ["reset", "freeze", "warn"])
@pytest.mark.parametrize(
    ("name", "norm"),
    [(name, norm) for name in ("tent", "cotta", "eta") for norm in ("batch", "stream(0.01)", "window(64)")]
    + [("tent", "running(0.1, 1)")],
)
def test_healthy_streams_are_the_same_bit_for_bit(name, norm, policy):
    method = METHODS[name](**({"threshold": 0.0} if name == "cotta" else {}))
    settings = {"protocol": "online", "norm": norm, "steps": 1, "lr": 1e-4}
    plain, watched = (confident(method, **settings, on_collapse=each) for each in (None, policy))
    for seed in range(3):
        expected, found = plain(images(16, seed)), watched(images(16, seed))
        assert not watched.trace.collapsed
        assert torch.equal(expected, found)
    assert_same(fingerprint(plain.model), fingerprint(watched.model))
    assert 0 <= watched.trace.agreement <= 1


def test_the_unadapted_model_has_statistics_of_its_own():
    """Where statistics follow the stream, those of the unadapted model follow it, too: what zero steps would give."""
    harmed = confident(protocol="online", norm="stream(0.02)", on_collapse="reset", **HARM)
    still = confident(protocol="online", norm="stream(0.02)", steps=0)
    for seed in range(12):
        found, expected = harmed(images(24, seed)), still(images(24, seed))
        assert harmed.trace.stopped in ("collapsed", "resting")
        torch.testing.assert_close(found, expected)


def test_the_source_gate_shares_its_look():
    adapter = confident(METHODS["actmad"](), protocol="online", stop="source", on_collapse="reset")
    passes = []
    adapter.model.classifier.register_forward_hook(lambda *_: passes.append(1))
    adapter(images(16))
    watched = len(passes)
    plain = confident(METHODS["actmad"](), protocol="online", stop="source")
    plain.model.classifier.register_forward_hook(lambda *_: passes.append(1))
    plain(images(16))
    assert adapter.trace.stopped == "left to source" or adapter.trace.agreement is not None
    assert len(passes) == 2 * watched


def test_each_row_of_predict_at_is_judged():
    together = confident(on_collapse="reset", **HARM).predict_at([0, 1, 3], images(48))
    for steps, logits in zip([0, 1, 3], together, strict=True):
        assert torch.equal(logits, confident(on_collapse="reset", lr=10.0, steps=steps)(images(48)))


def test_batches_of_one_are_judged_by_the_window():
    adapter = confident(protocol="online", norm="stream(0.01)", on_collapse="reset", **HARM)
    words = [adapter(images(1, seed)).shape and adapter.trace.stopped for seed in range(40)]
    assert "collapsed" in words
    assert words.index("collapsed") < 20


def test_the_score_of_the_branch_is_a_mean_over_the_window():
    model = ncttt.load("digits-small-ncttt")
    adapter = ncttt.Adapter(model, protocol="online", steps=1, lr=1e-4, on_collapse="warn")
    total = count = 0.0
    for size in (64, 32, 224):
        adapter(torch.rand(size, 3, 32, 32, generator=torch.Generator().manual_seed(size)))
        fading = 1 - size / WINDOW
        total, count = fading * total + size * adapter.trace.shift_after, fading * count + size
        assert adapter.trace.score == pytest.approx(total / count)


def test_a_method_without_a_branch_has_no_score_in_its_window():
    adapter = confident(protocol="online", on_collapse="warn", lr=1e-4)
    adapter(images(16))
    assert adapter.trace.agreement is not None
    assert adapter.trace.score is None


def test_a_reset_of_the_user_forgets_window_and_rest():
    adapter = confident(protocol="online", on_collapse="reset", **HARM)
    before = everything(adapter)
    adapter(images(48))
    adapter.reset()
    assert_same(before, everything(adapter))


@dataclass(frozen=True, kw_only=True)
class Failing(ncttt.Tent):
    """TENT with an error in the middle of a batch."""

    def after_step(self, model):
        if getattr(model, "fails", False):
            raise RuntimeError("in the middle")


def test_an_error_leaves_the_state():
    adapter = confident(Failing(), protocol="online", norm="stream(0.01)", on_collapse="reset")
    adapter(images(16))
    before = everything(adapter)
    adapter.model.fails = True
    with pytest.raises(RuntimeError, match="in the middle"):
        adapter(images(16, seed=1))
    del adapter.model.fails
    assert_same(before, everything(adapter))


@pytest.mark.parametrize("settings", [{}, HARM])
def test_a_state_goes_on_where_it_was(settings):
    once, again = (confident(protocol="online", norm="stream(0.01)", on_collapse="reset", **settings) for _ in range(2))
    for seed in range(3):
        once(images(32, seed))
    again.load_state_dict(once.state_dict())
    for seed in range(3, 20):
        assert torch.equal(once(images(32, seed)), again(images(32, seed)))
        assert once.trace == again.trace


def test_a_state_of_another_policy_is_refused():
    state = confident(protocol="online", on_collapse="freeze").state_dict()
    with pytest.raises(InputError, match="on_collapse=freeze"):
        confident(protocol="online", on_collapse="reset").load_state_dict(state)


def test_it_follows_the_adapter_to_another_type():
    adapter = confident(protocol="online", norm="stream(0.01)", on_collapse="reset", **HARM).to(torch.float64)
    adapter(images(48))
    assert adapter.trace.collapsed
    assert adapter(images(48)).dtype == torch.float64


def test_threads_take_turns():
    adapter = confident(protocol="online", on_collapse="reset", **HARM)
    work = [threading.Thread(target=adapter, args=(images(48, seed),)) for seed in range(4)]
    for each in work:
        each.start()
    for each in work:
        each.join()
    assert adapter._state.batches == 4
    assert adapter.watch.rest.tolist() == [REST - 3 * 48, 2 * REST]


@pytest.mark.parametrize("bad", ["restart", "", True, 3])
def test_a_bad_policy_is_one_line(bad):
    with pytest.raises(
        InputError, match=r"on_collapse must be one of 'reset', 'freeze', 'warn' or None; found"
    ) as error:
        confident(on_collapse=bad)
    assert "\n" not in str(error.value)


def test_a_memory_is_watched_without_a_loss():
    adapter = confident(PrototypeToy(), protocol="online", on_collapse="warn")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CollapseWarning)  # prototypes of noise say little
        adapter(images(16))
    assert 0 <= adapter.trace.agreement <= 1


def test_what_cannot_collapse_is_not_watched():
    adapter = confident(ncttt.PTBN(), on_collapse="reset")
    adapter(images(16))
    assert adapter.watch is None
    assert adapter.trace.agreement is None


def test_baking_leaves_the_watch_alone():
    adapter = confident(protocol="online", on_collapse="reset", **HARM)
    before = everything(adapter)
    baked = adapter.bake(images(48))
    assert_same(before, everything(adapter))
    torch.testing.assert_close(baked(images(48)), unadapted(adapter, images(48)), rtol=1e-3, atol=1e-3)


@pytest.fixture(scope="module")
def digits():
    """A model of digits, and a stream of validation images: clean, then blurred."""
    data = ncttt.data.load("digits", "val")
    sets = [data, ncttt.data.load("digits", "val", corruption="gaussian_blur", severity=5)]
    return ncttt.load("digits-small-ncttt"), sets


def accuracy(adapter, sets, order="random", size=32, count=None) -> float:
    right, done = [], 0
    for seed in range(1000):
        for data in sets:
            for batch, labels in ncttt.data.batches(data.subset(order_of(data.labels, order, seed)), size):
                right.append((adapter(batch).argmax(1) == torch.as_tensor(labels)).float())
                done += 1
                if done == count:
                    return torch.cat(right).mean().item()
        if count is None:
            break
    return torch.cat(right).mean().item()


LEARNERS = {
    "tent": {},
    "eta": {},
    "cotta": {"views": 2},
    "nc_ttt": None,
}


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize(("order", "faster"), [("by_class", 1), ("random", 100)])
def test_disasters_cost_at_most_two_points(digits, name, order, faster):
    model, sets = digits
    method = model.method if LEARNERS[name] is None else METHODS[name](**LEARNERS[name])
    settings = {"protocol": "continual", "lr": faster * method.lr, "steps": min(method.steps, 2)}
    floor = accuracy(ncttt.Adapter(model, method, protocol="continual", steps=0), sets, order)
    assert accuracy(ncttt.Adapter(model, method, on_collapse="reset", **settings), sets, order) >= floor - 0.02


def test_a_thousand_small_batches_end_well(digits):
    model, sets = digits
    method = ncttt.Tent(lr=0.1)
    floor = accuracy(ncttt.Adapter(model, ncttt.PTBN()), sets, size=8)
    adapter = ncttt.Adapter(model, method, protocol="continual", on_collapse="reset")
    assert accuracy(adapter, sets, size=8, count=1000) >= floor - 0.02
    assert adapter.watch.rest[1] > REST, "there was no disaster to survive"


def test_statistics_that_follow_single_images_are_no_collapse():
    """Behind the gate small batches get the statistics of the stream; the unadapted model must have them, too."""
    model = ncttt.load("digits-small-ncttt")
    faded = ncttt.data.load("digits", "test", corruption="contrast", severity=3)
    batch, labels = next(iter(ncttt.data.batches(faded, 200)))
    adapter = ncttt.Adapter(model, protocol="online", stop="source", on_collapse="reset")
    logits = torch.cat([adapter(image[None]) for image in batch])
    assert adapter.watch is not None
    assert not adapter.watch.resting
    assert adapter.trace.stopped == "nothing to learn"
    assert adapter.trace.agreement == pytest.approx(1.0)  # nothing was learned
    assert (logits.argmax(1) == labels).float().mean() > 0.9
