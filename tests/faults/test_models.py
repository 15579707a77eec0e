"""Networks that run another program than they show, or change by themselves: refused by name, or put back."""

import copy
import io
import warnings
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import ncttt
from ncttt import InputError
from ncttt.testing.cases import CLASSES, assert_same, fingerprint, images

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*deprecated"),
    pytest.mark.filterwarnings("ignore::ncttt.adapt.small_batches.SmallBatchWarning"),
]
METHODS = {
    "source": ncttt.Source(),
    "ptbn": ncttt.PTBN(),
    "blend": ncttt.PTBN(norm="blend(0.5)"),
    "running": ncttt.PTBN(norm=ncttt.norm.running(0.5, 2)),
    "tent": ncttt.Tent(lr=0.1),
    "lame": ncttt.Lame(),
}


class Net(nn.Module):
    """Two BatchNorms, whose source statistics are those of other data."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        self.body = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        self.fc = nn.Linear(8, CLASSES)
        for norm in (self.stem[1], self.body[1]):
            norm.running_mean.normal_()
            norm.running_var.uniform_(0.2, 3)
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(self.body(self.stem(x)).mean((2, 3)))


def quick(part: Callable) -> Callable:
    return torch.compile(part, backend="eager")


def used(net: nn.Module) -> nn.Module:
    """With a graph that was compiled before anything was hooked."""
    with torch.no_grad():
        net(images(32))
    return net


def compiled_in_place() -> nn.Module:
    net = Net()
    net.compile(backend="eager")
    return net


def compiled_forward() -> nn.Module:
    net = Net()
    net.forward = quick(net.forward)
    return net


def compiled_method() -> nn.Module:
    class Compiled(Net):
        @torch.compile(backend="eager")
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x)

    return Compiled()


def compiled_attribute() -> nn.Module:
    class Compiled(Net):
        def __init__(self) -> None:
            super().__init__()
            self.run = quick(lambda x: Net.forward(self, x))

        def forward(self, x: Tensor) -> Tensor:
            return self.run(x)

    return Compiled()


def with_body(change: Callable[[nn.Module], nn.Module]) -> nn.Module:
    net = Net()
    net.body = change(net.body)
    return net


def compiled_body_in_place() -> nn.Module:
    net = Net()
    net.body.compile(backend="eager")
    return net


def exported_body() -> nn.Module:
    return with_body(lambda body: torch.export.export(body, (torch.rand(32, 8, 16, 16),)).module())


def lazy() -> nn.Module:
    return with_body(lambda body: nn.Sequential(body, nn.LazyBatchNorm2d()))


def quantised() -> nn.Module:
    from torch.ao import quantization

    net = nn.Sequential(quantization.QuantStub(), nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), quantization.DeQuantStub())
    net = nn.Sequential(net, nn.Flatten(), nn.Linear(8 * 14 * 14, CLASSES)).eval()
    net[0].qconfig = quantization.get_default_qconfig(torch.backends.quantized.supported_engines[-1])
    prepared = quantization.prepare(net)
    prepared(images(32))
    return quantization.convert(prepared)


NOT_EAGER = {
    "compiled": (lambda: used(quick(Net())), r"the network is compiled; .* net\._orig_mod"),
    "compiled in place": (lambda: used(compiled_in_place()), "the network is compiled"),
    "compiled forward": (lambda: used(compiled_forward()), "the network is compiled"),
    "compiled method": (lambda: used(compiled_method()), "the network is compiled"),
    "compiled attribute": (lambda: used(compiled_attribute()), "the network is compiled"),
    "compiled part": (lambda: used(with_body(quick)), r"layer 'body' is compiled; .* net\.body\._orig_mod"),
    "compiled part in place": (lambda: used(compiled_body_in_place()), "layer 'body' is compiled"),
    "scripted": (lambda: torch.jit.script(Net()), "the network is scripted or traced"),
    "scripted part": (lambda: with_body(torch.jit.script), "layer 'body' is scripted or traced"),
    "traced": (lambda: torch.jit.trace(Net(), images(2)), "the network is scripted or traced"),
    "exported": (lambda: torch.export.export(Net(), (images(32),)).module(), "the network is exported"),
    "exported part": (exported_body, "layer 'body' is exported"),
    "in parallel": (lambda: nn.DataParallel(Net()), r"the network is a DataParallel; .* net\.module"),
    "part in parallel": (lambda: with_body(nn.DataParallel), r"layer 'body' is a DataParallel; .* net\.body\.module"),
    "quantised": (quantised, r"layer '0\.0' is quantised"),
    "linear layer quantised": (
        lambda: torch.ao.quantization.quantize_dynamic(Net(), {nn.Linear}),
        r"layer 'fc' is quantised \(Linear\)",
    ),
    "lazy": (lazy, "layer 'body.1' is not initialised yet"),
}
DOORS: dict[str, Callable[[nn.Module], object]] = {
    **{name: lambda net, method=method: ncttt.Adapter(net, method) for name, method in METHODS.items()},
    "monitor": ncttt.Monitor,
    "attach": lambda net: ncttt.attach(net, "auto", ncttt.NCTTT(), images(2)),
    "model": lambda net: ncttt.Branched(net, None, ncttt.PTBN()),
}


@pytest.mark.parametrize("kind", NOT_EAGER)
def test_a_network_that_is_not_eager_is_refused_at_every_door(kind):
    make, message = NOT_EAGER[kind]
    net = make()
    for name, door in DOORS.items():
        with pytest.raises(InputError, match=message):
            raise AssertionError(f"{name} took it: {door(net)}")


def test_a_model_that_was_compiled_after_it_was_made_is_refused():
    model = ncttt.attach(Net(), "body", ncttt.NCTTT(), images(2))
    model.classifier.compile(backend="eager")
    for door in (ncttt.Adapter, ncttt.Monitor):
        with pytest.raises(InputError, match="layer 'classifier' is compiled"):
            door(model)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.sound
def test_a_traced_graph_of_modules_is_adapted_like_its_source(method):
    traced, plain = (ncttt.Adapter(net, METHODS[method]) for net in (torch.fx.symbolic_trace(Net()), Net()))
    assert torch.equal(traced(images(64)), plain(images(64)))


def with_a_function_for_a_forward() -> nn.Module:
    net = Net()
    forward = net.forward
    net.forward = lambda x: forward(x)
    return net


def test_a_watched_copy_that_would_run_the_original_is_refused():
    net = with_a_function_for_a_forward()
    with pytest.raises(InputError, match=r"the network has a forward that was replaced .* copy=False"):
        ncttt.Monitor(net)
    ncttt.Monitor(net, copy=False)


@pytest.mark.parametrize("method", METHODS)
def test_a_copy_that_would_run_the_original_is_refused(method):
    net = with_a_function_for_a_forward()
    with pytest.raises(InputError, match=r"the network has a forward that was replaced .* copy=False"):
        ncttt.Adapter(net, METHODS[method])
    expected = ncttt.Adapter(Net(), METHODS[method])(images(64))
    assert torch.equal(ncttt.Adapter(net, METHODS[method], copy=False)(images(64)), expected)


@pytest.mark.parametrize("norm", ["batch", "blend(0.5)", "running(0.5, 2)"])
def test_a_forward_that_runs_the_layers_of_another_network_is_told(norm):
    other = Net()

    class Elsewhere(Net):
        def forward(self, x: Tensor) -> Tensor:
            return other(x)

    with pytest.raises(InputError, match="changed nothing: the network has 2 BatchNorm layers, but its forward ran"):
        ncttt.Adapter(Elsewhere(), ncttt.PTBN(norm=norm))(images(64))


class Frozen(nn.Module):
    """A BatchNorm of somebody's own."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.register_buffer("running_mean", torch.zeros(channels))
        self.register_buffer("running_var", torch.ones(channels))

    def forward(self, x: Tensor) -> Tensor:
        return F.batch_norm(x, self.running_mean, self.running_var)


def test_statistics_that_a_policy_cannot_govern_are_named():
    net = with_body(lambda body: nn.Sequential(body, Frozen(8)))
    with pytest.warns(UserWarning, match=r"1 other layer will use source statistics, first 'body\.1' \(Frozen\)"):
        ncttt.Adapter(net, ncttt.PTBN())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ncttt.Adapter(net, ncttt.Source())


def test_batch_norms_that_were_folded_away_are_missed():
    from torch.fx.experimental.optimization import fuse

    with pytest.warns(UserWarning, match="changes nothing: the classifier has no BatchNorm"):
        ncttt.Adapter(fuse(Net()), ncttt.PTBN())
    with pytest.raises(InputError, match="TENT moves scale and shift of BatchNorm layers; found none"):
        ncttt.Adapter(fuse(Net()), ncttt.Tent())


class Restless(nn.Module):
    """Changes a buffer in each forward, and its output with it."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.register_buffer("seen", torch.zeros(8), persistent=kind != "hidden")
        self.register_buffer("count", torch.zeros((), dtype=torch.long))

    def forward(self, x: Tensor) -> Tensor:
        mean = x.detach().mean((0, 2, 3))
        if self.kind == "replaced":
            self.seen, self.count = self.seen + mean, self.count + 1
        elif self.kind == "data":
            self.seen.data.add_(mean)
        elif self.kind == "grown":
            self.seen = torch.cat([self.seen, mean])
        else:
            self.seen.add_(mean)
            self.count += 1
        return x + self.seen[-8:, None, None]


RESTLESS = ["in place", "replaced", "data", "grown", "hidden"]


def restless(kind: str) -> nn.Module:
    return with_body(lambda body: nn.Sequential(Restless(kind), body)).eval()


def state_of(net: nn.Module) -> dict:
    return fingerprint(net) | {f"buffer {name}": buffer.clone() for name, buffer in net.named_buffers()}


@pytest.mark.parametrize("protocol", ["episodic", "online", "continual"])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", RESTLESS)
def test_buffers_that_a_forward_changes_are_put_back(kind, method, protocol):
    adapter = ncttt.Adapter(restless(kind), METHODS[method], protocol=protocol)
    before = state_of(adapter.model)
    first = adapter(images(64, 1))
    adapter(images(64, 2))
    adapter.reset()
    assert_same(before, state_of(adapter.model))
    assert torch.equal(adapter(images(64, 1)), first)
    if protocol == "episodic":
        assert torch.equal(adapter(images(64, 1)), first)


@pytest.mark.parametrize("kind", RESTLESS)
def test_a_stream_over_such_a_network_is_saved_and_goes_on(kind):
    one, other = (ncttt.Adapter(restless(kind), METHODS["tent"], protocol="online") for _ in range(2))
    one(images(64, 1))
    file = io.BytesIO()
    torch.save(one.state_dict(), file)
    other.load_state_dict(torch.load(io.BytesIO(file.getvalue()), weights_only=True))
    assert torch.equal(one(images(64, 2)), other(images(64, 2)))


@pytest.mark.parametrize("kind", RESTLESS)
def test_nobody_elses_network_is_changed_by_a_look(kind):
    net = restless(kind)
    before = state_of(net)
    ncttt.attach(net, "body.1", ncttt.NCTTT(), images(2)).calibrate([images(64)])
    ncttt.attach(net, "auto", ncttt.NCTTT(), images(2))
    monitor = ncttt.Monitor(net, window=8, copy=False).calibrate([images(200)])
    first = monitor(images(8)).logits
    assert torch.equal(monitor(images(8)).logits, first)
    assert_same(before, state_of(net))


def test_a_batch_that_fails_leaves_the_buffers():
    adapter = ncttt.Adapter(restless("in place"), ncttt.PTBN())
    before = state_of(adapter.model)
    adapter.model.classifier.fc.register_forward_hook(lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        adapter(images(64))
    adapter.model.classifier.fc._forward_hooks.clear()
    assert_same(before, state_of(adapter.model))


@pytest.mark.parametrize("persistent", [True, False])
def test_a_buffer_that_a_forward_makes_is_named_unless_it_is_a_cache(persistent):
    class Making(nn.Identity):
        def forward(self, x: Tensor) -> Tensor:
            if not hasattr(self, "made"):
                self.register_buffer("made", torch.ones(8), persistent=persistent)
            return x

    net = with_body(lambda body: nn.Sequential(Making(), body))
    if persistent:
        with pytest.raises(InputError, match=r"makes a buffer 'body\.0\.made'.* run the network on a batch before"):
            ncttt.Adapter(net, ncttt.PTBN())(images(64))
        net(images(2))
    assert torch.equal(ncttt.Adapter(net, ncttt.PTBN())(images(64)), ncttt.Adapter(Net(), ncttt.PTBN())(images(64)))


@pytest.mark.parametrize("method", METHODS)
def test_normed_weights_are_as_they_were_after_a_reset(method):
    net = Net()
    nn.utils.parametrizations.spectral_norm(net.body[0])
    nn.utils.parametrizations.weight_norm(net.fc)
    for mode in (True, False):
        adapter = ncttt.Adapter(net.train(mode), METHODS[method], protocol="online")
        before, given = state_of(adapter.model), copy.deepcopy(state_of(net))
        adapter(images(64))
        adapter.reset()
        assert_same(before, state_of(adapter.model))
        assert_same(given, state_of(net))
