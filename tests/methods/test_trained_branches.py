"""What all methods with a trained branch have in common: they learn on digits, are saved, run in parallel training."""

import pytest
import torch
from torch import distributed, nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

import ncttt
from ncttt.methods import METHODS
from ncttt.training.epoch import held_out_metrics

BRANCHED = [method for method in METHODS.values() if method.needs_training()]
every_method = pytest.mark.parametrize("method", BRANCHED, ids=lambda method: method.name)


class Joint(nn.Module):
    """Cross-entropy and auxiliary loss from one joint pass, in one module."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, images, labels):
        logits, features = self.model.forward_with_features(images)
        auxiliary = self.model.method.training_loss(self.model, images, features, logits)
        return F.cross_entropy(logits, labels) + auxiliary, auxiliary.detach()


def digits_model(method, width=8):
    torch.manual_seed(0)
    example = torch.rand(2, 3, 32, 32)
    net, layer = ncttt.models.small(width=width), "layer2"
    if method is ncttt.TTTMAE:
        net, layer = ncttt.models.vit(width=4 * width, depth=2), "norm"
    return ncttt.attach(net, layer, method(), example, mean=(0.3,) * 3, std=(0.4,) * 3)


def learn(joint, steps, batch_size=64):
    """Auxiliary losses of a few steps on digits."""
    data = ncttt.data.load("digits", "fit")
    optimizer = torch.optim.Adam(joint.parameters(), lr=5e-3)
    losses = []
    torch.manual_seed(0)
    joint.train()
    for images, labels in ncttt.data.batches(data, batch_size, shuffle=True, drop_last=True):
        loss, auxiliary = joint(images, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(auxiliary.item())
        if len(losses) == steps:
            break
    return losses


@every_method
def test_the_training_loss_falls_and_the_branch_is_healthy(method):
    model = digits_model(method)
    losses = learn(Joint(model), steps=14)
    assert sum(losses[-3:]) < sum(losses[:3])
    figures = held_out_metrics(model, ncttt.data.load("digits", "val"), batch_size=65)
    assert all(abs(value) < float("inf") for value in figures.values())
    assert isinstance(model.method.warnings(figures), list)


@every_method
def test_a_saved_branch_comes_back(method, tmp_path):
    model = digits_model(method)
    learn(Joint(model), steps=2)
    batch = torch.rand(6, 3, 32, 32)
    model.method.calibrate(model, [batch])
    ncttt.save(model, tmp_path)
    loaded = ncttt.load(tmp_path)
    assert loaded.method == model.method
    assert torch.equal(ncttt.Adapter(loaded)(batch), ncttt.Adapter(model)(batch))
    assert all(torch.equal(b, dict(model.named_buffers())[name]) for name, b in loaded.named_buffers())


@every_method
def test_one_module_trains_in_parallel(method, tmp_path):
    """Two steps: the second fails if a parameter of the first had no gradient."""
    distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        parallel = learn(DistributedDataParallel(Joint(digits_model(method))), steps=3, batch_size=16)
    finally:
        distributed.destroy_process_group()
    assert parallel == pytest.approx(learn(Joint(digits_model(method)), steps=3, batch_size=16), rel=1e-4)
