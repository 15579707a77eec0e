"""Baking: a plain module that predicts as the adapter did, and what can be done with it."""

import copy
import io

import pytest
import torch
from safetensors.torch import load, save
from torch import nn

import ncttt
from contract import PrototypeToy
from contrast_alone import CONTRAST_ALONE
from ncttt import InputError
from ncttt.model import Baked
from ncttt.testing.cases import Case, always, assert_same, fingerprint, images, never, resnet

METHOD = ncttt.NCTTT(
    conditional=False,
    scaling="standardize",
    hidden=32,
    moves="encoder",
    **CONTRAST_ALONE,
)
METHODS = [METHOD, ncttt.Tent(), ncttt.PTBN(), ncttt.Source()]
POLICIES = ["batch", "blend(0.3)", "running(0.3, 2)", "source", ("batch", "source"), ("source", "blend(0.5)")]


def close(given, expected):
    torch.testing.assert_close(given, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("protocol", ["episodic", "online"])
@pytest.mark.parametrize("policy", POLICIES, ids=str)
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_a_baked_module_predicts_the_last_batch_as_the_adapter_did(method, policy, protocol):
    adapter = Case("resnet", method, protocol=protocol).adapter(norm=policy)
    adapter(images(7, 1))
    logits = adapter(images(6))
    before = copy.deepcopy(adapter.state_dict())
    baked = adapter.bake()
    assert not isinstance(baked, ncttt.Adapter)
    assert not any(part.training or part._forward_pre_hooks for part in baked.modules())
    close(baked(images(6)), logits)
    close(torch.cat([baked(image[None]) for image in images(6)]), logits)  # nothing depends on the batch any more
    after = adapter.state_dict()
    assert all(torch.equal(after[name], before[name]) for name in before if name != "_extra_state")
    assert str(after["_extra_state"]) == str(before["_extra_state"])


@pytest.mark.parametrize("protocol", ["episodic", "online"])
def test_images_that_are_given_are_baked_as_a_call_would_predict_them(protocol):
    adapter = Case("resnet", METHOD, protocol=protocol).adapter()
    adapter(images(6, 1))
    baked = adapter.bake(images(8, 2))
    close(baked(images(8, 2)), adapter(images(8, 2)))
    close(adapter.bake()(images(8, 2)), baked(images(8, 2)))


def test_the_adapters_model_alone_is_not_what_it_predicts_by():
    adapter = Case("resnet", METHOD).adapter(protocol="online")
    logits = adapter(images(6))
    with torch.no_grad():
        assert not torch.allclose(adapter.model.eval()(images(6)), logits, atol=1e-2)


def test_a_batch_left_to_the_source_is_baked_as_the_source():
    for protocol in ("episodic", "online"):
        adapter = Case("resnet", METHOD, protocol=protocol).adapter(stop="source")
        with torch.no_grad():
            source = adapter.model(images(6))
        never(adapter.model)
        adapter(images(6, 1))
        always(adapter.model)
        assert torch.equal(adapter(images(6)), source)
        close(adapter.bake()(images(6)), source)
        close(adapter.bake(images(6, 2))(images(6)), source)


def test_what_cannot_be_baked_is_told():
    for method in (ncttt.Lame(), PrototypeToy()):
        adapter = Case("resnet", method).adapter()
        adapter(images(6))
        with pytest.raises(InputError, match="predicts by more than a forward of the network"):
            adapter.bake()
    adapter = Case("resnet", METHOD).adapter(protocol="online")
    with pytest.raises(InputError, match=r"none came since the last reset; give bake\(images\)"):
        adapter.bake()
    batch = images(6)
    adapter(batch)
    batch.mul_(0.5)
    with pytest.raises(InputError, match="changed in place"):
        adapter.bake()
    twice = Case("branching", ncttt.PTBN()).adapter()
    before = fingerprint(twice.model)
    with pytest.raises(InputError, match=r"layer 'body.1' runs more than once"):
        twice.bake(images(6))
    assert before.keys() == fingerprint(twice.model).keys()
    assert not any(part._forward_pre_hooks for part in twice.model.modules())


@pytest.mark.parametrize("architecture", ["vgg", "vit"])
def test_other_networks_are_baked_too(architecture):
    method = ncttt.Tent(moves="norm") if architecture == "vit" else ncttt.Tent()
    adapter = Case(architecture, method).adapter(norm="source" if architecture == "vit" else "batch")
    logits = adapter(images(6))
    close(adapter.bake()(images(6)), logits)


def baked_net() -> tuple[Baked, torch.Tensor]:
    net = resnet().eval()
    adapter = ncttt.Adapter(net, ncttt.Tent(), mean=(0.5, 0.4, 0.3), std=(0.2, 0.2, 0.2), lr=0.1)
    logits = adapter(images(6))
    return adapter.bake(), logits


def test_a_baked_module_can_be_saved_and_loaded():
    baked, logits = baked_net()
    file = io.BytesIO()
    torch.save(baked.state_dict(), file)
    file.seek(0)
    for state in (torch.load(file, weights_only=True), load(save(baked.state_dict()))):
        again = Baked(resnet(), mean=[0.5] * 3, std=[0.2] * 3).eval()
        again.load_state_dict(state)
        close(again(images(6)), logits)
    plain = resnet().eval()
    plain.load_state_dict(baked.classifier.state_dict())
    close(plain((images(6) - baked.mean) / baked.std), logits)


def test_a_baked_module_can_be_exported():
    baked, logits = baked_net()
    shapes = {"images": {0: torch.export.Dim("batch")}}
    program = torch.export.export(baked, (images(2),), dynamic_shapes=shapes)
    close(program.module()(images(6)), logits)


def test_a_baked_module_runs_under_onnx(tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    baked, logits = baked_net()
    torch.onnx.export(baked, (images(6),), tmp_path / "model.onnx", input_names=["images"], dynamo=True)
    session = runtime.InferenceSession(tmp_path / "model.onnx")
    (given,) = session.run(None, {"images": images(6).numpy()})
    close(torch.from_numpy(given), logits)


def test_a_copy_of_an_adapter_holds_on_to_no_batch():
    adapter = Case("resnet", METHOD).adapter(protocol="online")
    logits = adapter(images(6))
    copied = copy.deepcopy(nn.Sequential(adapter))[0]
    with pytest.raises(InputError, match="none came"):
        copied.bake()
    close(adapter.bake()(images(6)), logits)


def test_a_module_that_a_state_is_read_into_shares_nothing_with_the_network():
    net = resnet()
    before = fingerprint(net)
    baked = ncttt.model.Baked(net, [0.5] * 3, [0.25] * 3)
    baked.load_state_dict({name: tensor + 1 for name, tensor in baked.state_dict().items()})
    assert_same(before, fingerprint(net))
