"""Checks of the promises of methods with a trained branch, written so that planted faults make them fail."""

import torch
from torch import Tensor, nn

import ncttt
from ncttt.methods.ttt_flow.flow import Flow
from ncttt.testing.cases import attached, images


def check_clusters_belong_to_positions() -> None:
    """The mutual information of maps, position by position, with each projector applied by hand."""
    method = ncttt.ClusT3(clusters=4, projectors=2)
    model = attached("resnet", method)
    logits, features = model.forward_with_features(images(3))
    linear = model.branch.projectors[0]
    information = []
    for projector in range(2):
        weight, bias = (p.view(2, 4, -1)[projector] for p in (linear.weight, linear.bias))
        rows = [
            (weight @ features[b, :, h, w] + bias.flatten()).softmax(0)
            for b in range(3)
            for h in range(features.shape[2])
            for w in range(features.shape[3])
        ]
        mean = sum(rows) / len(rows)
        inner = sum((row * row.log()).sum() for row in rows) / len(rows)
        information.append(inner - (mean * mean.log()).sum())
    expected = -sum(information)
    assert torch.allclose(method.training_loss(model, images(3), features, logits), expected, atol=1e-6)
    assert torch.allclose(method.adaptation_loss(model, images(3)).loss, expected, atol=1e-6)


def random_flow(channels: int, limit: float = 2.0) -> Flow:
    torch.manual_seed(0)
    flow = Flow(channels, couplings=3, hidden=8, limit=limit).double()
    flow.train()(3 * torch.randn(50, channels).double() + 1)
    for parameter in flow.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    return flow.eval()


def check_log_determinant_by_jacobian() -> None:
    for channels in (2, 5):
        flow = random_flow(channels)
        rows = torch.randn(4, channels).double()
        for row, log_determinant in zip(rows, flow(rows)[1], strict=True):
            step = 1e-6 * torch.eye(channels).double()
            differences = (flow(row + step)[0] - flow(row - step)[0]).T / 2e-6
            exact = torch.autograd.functional.jacobian(lambda r, flow=flow: flow(r[None])[0][0], row)
            assert torch.allclose(differences, exact, atol=1e-6)
            assert torch.allclose(torch.linalg.slogdet(exact)[1], log_determinant, atol=1e-8)


class Corners(nn.Module):
    """A judge that sees where the bright corner of an image went by quarter turns counter-clockwise."""

    def forward(self, maps: Tensor) -> Tensor:
        return 50 * maps[:, 0][:, [0, -1, -1, 0], [0, 0, -1, -1]]


def check_rotation_labels() -> None:
    method = ncttt.TTT(rotations="one")
    net = nn.Sequential(nn.Conv2d(1, 1, 1), nn.Flatten(), nn.Linear(9, 5))
    nn.init.ones_(net[0].weight)
    nn.init.zeros_(net[0].bias)
    corner = torch.zeros(8, 1, 3, 3)
    corner[:, 0, 0, 0] = 1
    model = ncttt.attach(net, "0", method, corner)
    model.branch.forward = Corners().forward
    logits, features = model.forward_with_features(corner)
    assert method.adaptation_loss(model, corner).loss < 1e-6
    assert method.training_loss(model, corner, features, logits) < 1e-6
    assert method.health(model, corner, features, logits)["rotation_accuracy"] == 1
