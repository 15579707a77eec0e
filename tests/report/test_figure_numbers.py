"""The numbers that the figures show, against independent computations."""

import math

import numpy as np
import pytest
from figure_pages import page
from matplotlib.patches import Circle
from matplotlib.quiver import Quiver
from scipy import integrate, special, stats

PAIRS = [(sigma_in, sigma_out) for sigma_in in (0.01, 0.05) for sigma_out in (1, 5, 10, 50)]


def lines(axes) -> dict[str, np.ndarray]:
    """The data of the named curves of a panel, `(2, N)` each."""
    return {line.get_label(): np.array(line.get_data(), dtype=float) for line in axes.lines}


def log_density(points: np.ndarray, references: np.ndarray, sigma: float) -> np.ndarray:
    """The kernel density estimate by scipy, one Gaussian after another."""
    kernels = [stats.multivariate_normal(mean, sigma**2).logpdf(points) for mean in references]
    return special.logsumexp(kernels, axis=0) - math.log(len(references))


def probability(points, references, sigma_in: float, sigma_out: float) -> np.ndarray:
    return special.expit(log_density(points, references, sigma_in) - log_density(points, references, sigma_out))


def test_beta_curves_agree_with_integration_and_sampling():
    formulas, dimensions = page("beta").axes
    drawn = lines(formulas)

    def true(beta: float, dim: int) -> float:
        def integrand(x):
            logit = dim * math.log(beta) - (beta**2 - 1) / 2 * x
            log_density = (dim / 2 - 1) * math.log(x) - x / 2 - dim / 2 * math.log(2) - math.lgamma(dim / 2)
            return special.expit(logit) * math.exp(log_density)

        border = 2 * dim * math.log(beta) / (beta**2 - 1) if beta > 1 else dim
        return integrate.quad(integrand, 0, 40 * dim, points=[border, dim], limit=400, epsabs=0, epsrel=1e-8)[0]

    for beta, label in drawn["true, by integration"].T[::20]:
        assert label == pytest.approx(true(beta, 16), abs=1e-6)
    for dim in (8, 16, 64):
        for beta, label in lines(dimensions)[f"{dim} dimensions"].T[40::60]:
            assert label == pytest.approx(true(beta, dim), rel=1e-4)
    vectors = np.random.default_rng(7).normal(size=(40_000, 16))
    for beta, label in drawn["true, by sampling"].T:
        ratio = stats.norm.logpdf(beta * vectors).sum(1) - stats.norm.logpdf(beta * vectors, scale=beta).sum(1)
        assert label == pytest.approx(special.expit(ratio).mean(), abs=0.012)
    at_two = {name: float(np.interp(2, *drawn[name])) for name in ("as printed", "corrected")}
    assert at_two["as printed"] == pytest.approx(special.expit(16 * math.log(2) - 1.5), abs=1e-6)
    assert at_two["corrected"] == pytest.approx(special.expit(16 * (math.log(2) - 1.5)), abs=1e-6)


def test_beta_marks_where_the_true_label_is_the_tolerance():
    dimensions = page("beta").axes[1]
    for text in dimensions.texts[:3]:
        beta, label = text.xy
        assert label == 0.05
        assert text.get_text() == f"{beta:.2f}"
    assert [round(text.xy[0], 2) for text in dimensions.texts[:3]] == [2.63, 1.94, 1.39]


def posterior_maps() -> dict[tuple[float, float], np.ndarray]:
    """The maps by (sigma_in, sigma_out), rows of pixels from the bottom."""
    panels = [axes for axes in page("posterior").axes if axes.texts]
    return {pair: np.asarray(axes.images[0].get_array()) for pair, axes in zip(PAIRS, panels, strict=True)}


def posterior_points() -> np.ndarray:
    return np.asarray(page("posterior").axes[0].collections[-1].get_offsets())


@pytest.mark.parametrize("pair", PAIRS)
def test_posterior_maps_agree_with_scipy(pair):
    drawn = posterior_maps()[pair]
    line = (np.arange(320) + 0.5) / 320 * 1.6 - 0.8
    rows, columns = np.random.default_rng(0).integers(320, size=(2, 500))
    places = np.stack([line[columns], line[rows]], axis=1)
    assert drawn[rows, columns] == pytest.approx(probability(places, posterior_points(), *pair), abs=1e-9)


@pytest.mark.parametrize("pair", PAIRS)
def test_posterior_is_near_one_at_source_points_and_near_zero_far_away(pair):
    columns, rows = ((posterior_points().T + 0.8) / 1.6 * 320).astype(int)
    assert posterior_maps()[pair][rows, columns].min() > 0.9
    assert posterior_maps()[pair][[0, 0, -1, -1], [0, -1, 0, -1]].max() < 0.1


def test_posterior_region_grows_with_both_scales():
    areas = np.array([(drawn >= 0.5).mean() for drawn in posterior_maps().values()]).reshape(2, 4)
    assert np.all(np.diff(areas, axis=0) > 0)
    assert np.all(np.diff(areas, axis=1) > 0)
    written = [axes.texts[0].get_text() for axes in page("posterior").axes if axes.texts]
    assert written == [f"area {area * 1.6**2:.2f}" for area in areas.flat]


def test_samples_have_the_scales_and_labels_they_claim():
    whole, near, labelled = page("samples").axes[:3]
    outer, inner = (np.asarray(cloud.get_offsets()) for cloud in whole.collections)
    assert len(outer) == len(inner) == 700
    assert outer.std() == pytest.approx(1, rel=0.06)
    assert inner.std() == pytest.approx(0.05, rel=0.06)
    assert np.array_equal(near.collections[0].get_offsets(), outer)
    cloud = labelled.collections[0]
    vectors = np.asarray(cloud.get_offsets())
    assert len(vectors) == 1400
    assert np.asarray(cloud.get_array()) == pytest.approx(probability(vectors, np.zeros((1, 2)), 0.05, 1.0), abs=1e-9)


def test_samples_border_is_where_the_label_is_one_half():
    for axes in page("samples").axes[1:3]:
        (circle,) = (patch for patch in axes.patches if isinstance(patch, Circle))
        on_border = np.array([[circle.radius, 0], [0, -circle.radius]])
        assert probability(on_border, np.zeros((1, 2)), 0.05, 1.0) == pytest.approx(0.5, abs=1e-9)


def field_points() -> np.ndarray:
    return np.asarray(page("field").axes[0].collections[-1].get_offsets())


def field_loss(places: np.ndarray) -> np.ndarray:
    return -np.log(probability(places, field_points(), 0.15, 0.6))


def finite_difference(place: np.ndarray, step: float = 1e-5) -> np.ndarray:
    """The gradient of -log q without autograd."""
    around = place + step * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]])
    right, left, up, down = field_loss(around)
    return np.array([right - left, up - down]) / (2 * step)


def test_arrows_point_where_the_loss_falls():
    (arrows,) = (artist for artist in page("field").axes[0].collections if isinstance(artist, Quiver))
    for number in range(0, len(arrows.U), 7):
        gradient = finite_difference(arrows.XY[number])
        assert np.array([arrows.U[number], arrows.V[number]]) == pytest.approx(
            -gradient / np.linalg.norm(gradient), abs=1e-3
        )


def test_path_follows_the_gradient_and_its_loss_falls():
    plane, curve = page("field").axes[:2]
    path = lines(plane)["way of an outlier"].T
    losses = field_loss(path)
    drawn = curve.lines[1].get_ydata()
    assert drawn == pytest.approx(losses, rel=1e-6)
    assert np.all(np.diff(losses) < 0)
    assert path[10] - path[9] == pytest.approx(-0.005 * finite_difference(path[9]), rel=1e-3)


def test_path_does_not_stop_at_the_border():
    path = lines(page("field").axes[0])["way of an outlier"].T
    chances = np.exp(-field_loss(path))
    border = lines(page("field").axes[0])["border crossed"][:, 0]
    crossing = int(np.argmax(chances >= 0.5))
    assert border == pytest.approx(path[crossing])
    assert chances[0] < 1e-6
    assert chances[-1] > 0.8
    assert np.linalg.norm(path[-1] - border) > 0.2
