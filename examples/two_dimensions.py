"""The method in two dimensions: what the discriminator learns, and where it draws an outlier.

    python examples/two_dimensions.py [--figure two_dimensions.png]

Part 1 trains a small discriminator on points with two noises and the library's own loss, and compares it on a grid
with the exact posterior over all points (Eq. 4; Figures 2 and 3 of the paper). Part 2 moves an outlier by gradient
steps on -log q (Eq. 9; Figure 4) and looks at a claim: that it stops at the border of the in-distribution region.
"""

import argparse
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ncttt import noise

SIGMA_IN, SIGMA_OUT = 0.15, 0.6
EXTENT = 1.8


@dataclass(frozen=True)
class Path:
    """Where an outlier went: its positions `(steps + 1, 2)`, and the probability q at each of them."""

    positions: Tensor
    probabilities: Tensor

    @property
    def crossed_border_after(self) -> int:
        """Steps until q exceeds one half; -1 if it never does."""
        inside = (self.probabilities > 0.5).nonzero()
        return int(inside[0]) if len(inside) else -1


def make_points(count: int = 24, seed: int = 0) -> Tensor:
    """Source points `(count, 2)` on a noisy arc."""
    generator = torch.Generator().manual_seed(seed)
    angle = torch.rand(count, generator=generator) * torch.pi * 1.2
    arc = torch.stack([angle.cos(), angle.sin() - 0.3], dim=1)
    return arc + 0.08 * torch.randn(count, 2, generator=generator)


def train_discriminator(points: Tensor, steps: int = 2500, seed: int = 0) -> nn.Module:
    """Logits of q(z), learned from noisy views of the points and their soft labels."""
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(2, 96), nn.SiLU(), nn.Linear(96, 96), nn.SiLU(), nn.Linear(96, 1), nn.Flatten(0))
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    gaussian = noise.Gaussian()
    for _ in range(steps):
        chosen = points[torch.randint(len(points), (1024,))]
        added = torch.cat([gaussian.sample(chosen, SIGMA_IN), gaussian.sample(chosen, SIGMA_OUT)])
        labels = noise.soft_label(added, SIGMA_IN, SIGMA_OUT)
        loss = noise.contrastive_loss(net(chosen.repeat(2, 1) + added), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return net.eval().requires_grad_(False)


def grid(side: int = 61) -> Tensor:
    """Positions `(side * side, 2)` over the square that the noisy views fill."""
    line = torch.linspace(-EXTENT, EXTENT, side)
    return torch.cartesian_prod(line, line)


def posterior_error(net: nn.Module, points: Tensor) -> float:
    """Mean absolute difference between the learned and the exact probability on the grid."""
    where = grid()
    return (net(where).sigmoid() - noise.kde_posterior(where, points, SIGMA_IN, SIGMA_OUT)).abs().mean().item()


def follow(net: nn.Module, start: Tensor, steps: int = 3000, lr: float = 0.005, level: float | None = None) -> Path:
    """Move a point by gradient descent on -log q; with a level, stop once q has reached it."""
    position = start.clone().requires_grad_()
    positions, probabilities = [start.clone()], [net(start[None]).sigmoid().item()]
    for _ in range(steps):
        if level is not None and probabilities[-1] >= level:
            break
        (gradient,) = torch.autograd.grad(noise.in_distribution_loss(net(position[None])), position)
        with torch.no_grad():
            position -= lr * gradient
        positions.append(position.detach().clone())
        probabilities.append(net(positions[-1][None]).sigmoid().item())
    return Path(torch.stack(positions), torch.tensor(probabilities))


def verdict(free: Path, stopped: Path, points: Tensor, level: float) -> list[str]:
    """What happened, against the claim that the point stops at the border q = 1/2."""

    def end(path: Path) -> str:
        nearest = (points - path.positions[-1]).norm(dim=1).min().item()
        speed = (path.positions[-1] - path.positions[-2]).norm().item()
        return (
            f"{len(path.positions) - 1} steps, q = {path.probabilities[-1]:.3f}, {nearest:.3f} from the nearest point, "
            f"last step {speed:.1e} long"
        )

    border = noise.in_distribution_radius(SIGMA_IN, SIGMA_OUT, 2)
    return [
        f"outlier: starts at q = {free.probabilities[0]:.3f}, crosses q = 1/2 after {free.crossed_border_after} steps",
        f"radius of one point's region (Eq. 7): {border:.3f}",
        f"left alone: {end(free)}",
        f"stopped at the source's level q = {level:.3f}: {end(stopped)}",
        "claim 'the point stops at the border of the in-distribution region': "
        + ("holds" if abs(free.probabilities[-1] - 0.5) < 0.05 else "refuted: -log q still falls there, so it goes on"),
    ]


def draw(net: nn.Module, points: Tensor, free: Path, stopped: Path, file: str) -> None:
    """Exact and learned probability, the gradient field of log q, and both ways of the outlier."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    side = 61
    line = torch.linspace(-EXTENT, EXTENT, side)
    where = grid(side)
    maps = {
        "exact posterior": noise.kde_posterior(where, points, SIGMA_IN, SIGMA_OUT),
        "discriminator": net(where).sigmoid(),
    }
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained", sharey=True)
    for axis, (title, values) in zip(axes, maps.items(), strict=True):
        square = values.view(side, side).T.numpy()
        image = axis.pcolormesh(line.numpy(), line.numpy(), square, vmin=0, vmax=1, cmap="cividis", shading="gouraud")
        axis.contour(line.numpy(), line.numpy(), square, [0.5], colors="w")
        axis.scatter(*points.numpy().T, s=12, c="k")
        axis.set(title=title, aspect="equal")
    arrows = torch.cartesian_prod(*[torch.linspace(-EXTENT, EXTENT, 17)] * 2).requires_grad_()
    (field,) = torch.autograd.grad(nn.functional.logsigmoid(net(arrows)).sum(), arrows)
    field = field / field.norm(dim=1, keepdim=True).clamp(min=1e-6)
    axes[1].quiver(*arrows.detach().numpy().T, *field.numpy().T, color="w", alpha=0.5, scale=32)
    axes[1].plot(*free.positions.numpy().T, c="tab:red", label="left alone")
    axes[1].plot(*stopped.positions.numpy().T, c="tab:orange", lw=3, label="stopped at source level")
    axes[1].scatter(*free.positions[0].numpy(), marker="o", s=60, c="w", edgecolors="k", zorder=3)
    axes[1].legend(loc="lower right")
    figure.colorbar(image, ax=axes, label="in-distribution probability")
    figure.savefig(file, dpi=120)


def main(argv: list[str] | None = None) -> dict[str, float]:
    """Run both parts, print the report and return its numbers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--figure", help="write the figure to this file")
    options = parser.parse_args(argv)
    points = make_points()
    net = train_discriminator(points)
    error = posterior_error(net, points)
    print(f"mean absolute error of the discriminator against the exact posterior: {error:.4f}")
    start, level = torch.tensor([-1.3, -1.5]), net(points).sigmoid().mean().item()
    free, stopped = follow(net, start), follow(net, start, level=level)
    print("\n".join(verdict(free, stopped, points, level)))
    if options.figure:
        draw(net, points, free, stopped, options.figure)
    return {
        "error": error,
        "level": level,
        "start": free.probabilities[0].item(),
        "free": free.probabilities[-1].item(),
        "stopped": stopped.probabilities[-1].item(),
    }


if __name__ == "__main__":
    main()
