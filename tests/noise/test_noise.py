"""The noise mathematics against torch.distributions, Monte Carlo, scipy and the printed formulas."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, special, stats
from torch import distributions

from ncttt import noise
from ncttt.base.errors import InputError

FAMILIES = {
    "gaussian": lambda sigma: distributions.Normal(torch.zeros((), dtype=torch.float64), sigma),
    "laplace": lambda sigma: distributions.Laplace(torch.zeros((), dtype=torch.float64), sigma / math.sqrt(2)),
    "student_t": lambda sigma: distributions.StudentT(
        torch.tensor(5.0, dtype=torch.float64), 0.0, sigma * math.sqrt(3 / 5)
    ),
}


def printed_posterior(vectors: torch.Tensor, sigma_in: float, sigma_out: float) -> torch.Tensor:
    """Eq. 5 as printed, in float64: overflows for large dimensions, right for small ones."""
    squared, dim = vectors.double().square().sum(-1), vectors.shape[-1]
    inside, outside = (
        torch.tensor(sigma, dtype=torch.float64) ** -dim * torch.exp(-squared / (2 * sigma**2))
        for sigma in (sigma_in, sigma_out)
    )
    return inside / (inside + outside)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("dim", [2, 16, 96])
@pytest.mark.parametrize("beta", [1.2, 2, 5])
def test_posterior_agrees_with_torch_distributions(name, dim, beta):
    torch.manual_seed(0)
    vectors = torch.randn(200, dim, dtype=torch.float64) * torch.rand(200, 1, dtype=torch.float64) * 2
    inside, outside = (FAMILIES[name](sigma).log_prob(vectors).sum(-1) for sigma in (0.5, 0.5 * beta))
    family = noise.family(name)
    torch.testing.assert_close(family.log_prob(vectors, 0.5), inside, rtol=1e-10, atol=1e-10)
    logit = noise.soft_label_logit(vectors, 0.5, 0.5 * beta, name)
    torch.testing.assert_close(logit, inside - outside, rtol=1e-10, atol=1e-10)
    label = noise.soft_label(vectors, 0.5, 0.5 * beta, name)
    torch.testing.assert_close(label, torch.sigmoid(inside - outside), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("dim", [1, 2, 16])
def test_soft_label_equals_the_printed_form_where_that_works(dim):
    vectors = torch.randn(100, dim, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    expected = printed_posterior(vectors, 0.6, 1.1)
    torch.testing.assert_close(noise.soft_label(vectors, 0.6, 1.1), expected, rtol=1e-10, atol=1e-12)


def test_printed_form_fails_where_the_stable_one_does_not():
    vectors = torch.full((1, 24_576), 0.03)
    assert printed_posterior(vectors, 0.025, 0.05).isnan().all()
    assert noise.soft_label(vectors, 0.025, 0.05).isfinite().all()


@pytest.mark.parametrize("dim", [16, 24_576])
@pytest.mark.parametrize("scale", [1e-3, 0.025, 1e6])
def test_float32_is_right_at_the_border_where_terms_cancel(dim, scale):
    beta = 1.01
    generator = torch.Generator().manual_seed(2)
    vectors = torch.randn(64, dim, generator=generator, dtype=torch.float64)
    radius = noise.in_distribution_radius(scale, beta * scale, dim)
    vectors *= radius / vectors.norm(dim=1, keepdim=True) * torch.linspace(0.99, 1.01, 64, dtype=torch.float64)[:, None]
    exact = noise.soft_label(vectors, scale, beta * scale)
    labels = noise.soft_label(vectors.float(), scale, beta * scale)
    assert labels.dtype == torch.float32
    torch.testing.assert_close(labels.double(), exact, rtol=0, atol=1e-4)


@given(
    sigma_in=st.floats(1e-4, 1e3),
    beta=st.floats(1.001, 1e3),
    dim=st.integers(1, 500),
    name=st.sampled_from(sorted(FAMILIES)),
)
@settings(max_examples=60, deadline=None)
def test_labels_are_probabilities_and_fall_with_the_length_of_the_noise(sigma_in, beta, dim, name):
    direction = torch.ones(1, dim)
    lengths = torch.tensor([0.0, 0.5, 1.0, 2.0, 8.0])[:, None] * sigma_in
    labels = noise.soft_label(lengths * direction, sigma_in, beta * sigma_in, name)
    assert ((labels >= 0) & (labels <= 1)).all()
    assert labels[0] > 0.5
    if name != "student_t":  # its log ratio is bounded, so far outside it rises again towards a constant
        assert (labels.diff() <= 1e-6).all()


def test_no_inner_noise_is_the_limit():
    vectors = torch.zeros(3, 8)
    vectors[1, 2] = 1e-20
    vectors[2] = 1.0
    for name in FAMILIES:
        assert noise.soft_label(vectors, 0.0, 0.015, name).tolist() == [1, 0, 0]
    # and small scales approach it
    assert noise.soft_label(torch.full((1, 8), 0.01), 1e-6, 0.015).item() == 0


@pytest.mark.parametrize("name", FAMILIES)
def test_samples_follow_their_density(name):
    family, sigma = noise.family(name), 0.7
    sample = family.sample(torch.empty(200_000, dtype=torch.float64), sigma, torch.Generator().manual_seed(3))
    law = {
        "gaussian": stats.norm(scale=sigma),
        "laplace": stats.laplace(scale=sigma / math.sqrt(2)),
        "student_t": stats.t(5, scale=sigma * math.sqrt(3 / 5)),
    }[name]
    assert stats.kstest(sample.numpy(), law.cdf).pvalue > 1e-3
    assert sample.std().item() == pytest.approx(sigma, rel=0.02)


def test_samples_keep_the_type_and_obey_the_generator():
    like = torch.empty(4, 5, 6)
    for family in noise.NOISES.values():
        first, second = (family().sample(like, 1.0, torch.Generator().manual_seed(0)) for _ in range(2))
        assert torch.equal(first, second)
        assert first.shape == like.shape
        assert first.dtype == like.dtype
        assert first.isfinite().all()


def test_radius_is_where_the_label_is_one_half():
    for dim in (1, 16, 24_576):
        direction = torch.randn(1, dim, dtype=torch.float64, generator=torch.Generator().manual_seed(4))
        border = direction / direction.norm() * noise.in_distribution_radius(0.3, 0.9, dim)
        assert noise.soft_label(border, 0.3, 0.9).item() == pytest.approx(0.5, abs=1e-9)
    assert noise.in_distribution_radius(0.0, 1.0, 16) == 0


@pytest.mark.parametrize("dim", [2, 16, 96])
@pytest.mark.parametrize("beta", [1.2, 2, 5])
def test_expected_logit_and_label_by_monte_carlo(dim, beta):
    draws = torch.randn(200_000, dim, generator=torch.Generator().manual_seed(5), dtype=torch.float64) * beta
    logits = noise.soft_label_logit(draws, 1.0, beta)
    expected_logit = dim * (math.log(beta) - (beta**2 - 1) / 2)
    assert abs(logits.mean() - expected_logit) < 3 * logits.std() / len(logits) ** 0.5
    corrected = noise.expected_label_corrected(beta, dim).item()
    assert corrected == pytest.approx(special.expit(expected_logit), rel=1e-9)
    # Out-views short enough to matter are rare at large beta, so draw where the label is one half and reweigh.
    middle = noise.in_distribution_radius(1.0, beta, dim) / math.sqrt(dim)
    draws = draws / beta * middle
    weights = torch.exp(noise.Gaussian().log_prob(draws, beta) - noise.Gaussian().log_prob(draws, middle))
    labels = noise.soft_label(draws, 1.0, beta) * weights
    error = 3 * labels.std().item() / len(labels) ** 0.5
    assert abs(labels.mean() - noise.expected_label(beta, dim)) < error
    assert error < 0.1 * labels.mean()


def test_expected_label_by_scipy_quadrature():
    for dim, beta in ((1, 1.3), (16, 1.5), (16, 2.0), (96, 1.5), (400, 1.1)):
        weight = stats.chi2(dim).pdf
        logit = lambda x, d=dim, b=beta: d * math.log(b) - (b**2 - 1) / 2 * x  # noqa: E731
        value = integrate.quad(lambda x: weight(x) * special.expit(logit(x)), 0, 6 * dim + 60, limit=500)[0]  # noqa: B023
        assert noise.expected_label(beta, dim).item() == pytest.approx(value, rel=1e-6)


def test_the_papers_numbers_for_sixteen_dimensions():
    assert noise.expected_label(1.5, 16).item() == pytest.approx(0.187, abs=5e-4)
    assert noise.expected_label(2.0, 16).item() == pytest.approx(0.0423, abs=5e-4)
    assert torch.logit(noise.expected_label_as_printed(2.0, 16)).item() == pytest.approx(9.6, abs=0.05)
    assert torch.logit(noise.expected_label_corrected(2.0, 16)).item() == pytest.approx(-12.9, abs=0.05)


def test_expected_label_is_one_half_without_contrast_and_falls():
    betas = torch.linspace(1, 6, 40)
    for dim in (1, 16, 24_576):
        curve = noise.expected_label(betas, dim)
        assert curve.shape == betas.shape
        assert curve[0].item() == pytest.approx(0.5, abs=1e-6)
        assert (curve.diff() <= 0).all()


@given(dim=st.integers(1, 3_000), tolerance=st.floats(0.001, 0.45))
@settings(max_examples=25, deadline=None)
def test_smallest_beta_is_the_smallest(dim, tolerance):
    beta = noise.smallest_beta(dim, tolerance)
    assert noise.expected_label(beta, dim) <= tolerance
    assert noise.expected_label(1 + (beta - 1) * 0.999, dim) > tolerance


@pytest.mark.parametrize(("sigma_in", "sigma_out", "dim"), [(0.5, 1.0, 16), (1.0, 1.2, 2), (0.1, 0.15, 96)])
def test_bayes_floor_is_the_mean_entropy_of_labels(sigma_in, sigma_out, dim):
    draws = torch.randn(100_000, dim, generator=torch.Generator().manual_seed(6), dtype=torch.float64)
    both = torch.cat([noise.soft_label(sigma * draws, sigma_in, sigma_out) for sigma in (sigma_in, sigma_out)])
    entropy = torch.special.entr(both) + torch.special.entr(1 - both)
    error = 4 * entropy.std().item() / len(draws) ** 0.5
    assert noise.bayes_floor(sigma_in, sigma_out, dim) == pytest.approx(entropy.mean().item(), abs=error)
    assert noise.bayes_floor(0.0, 1.0, dim) == 0


def test_kde_is_the_mean_of_kernels():
    generator = torch.Generator().manual_seed(7)
    points, references = (torch.randn(n, 3, generator=generator, dtype=torch.float64) for n in (5, 7))
    kernel = distributions.MultivariateNormal(torch.zeros(3, dtype=torch.float64), 0.25 * torch.eye(3).double())
    slow = [torch.stack([kernel.log_prob(p - r).exp() for r in references]).mean().log() for p in points]
    torch.testing.assert_close(noise.kde_log_density(points, references, 0.5), torch.stack(slow))
    torch.testing.assert_close(noise.kde_nll(points, references, 0.5), -torch.stack(slow).mean())


def test_kde_posterior_is_finite_far_away_and_trains_points_towards_the_references():
    references = torch.zeros(1, 2)
    far = torch.tensor([[1e4, 0.0]])
    assert noise.kde_posterior(far, references, 0.1, 0.2).isfinite().all()
    point = torch.tensor([[1.0, 0.5]], requires_grad=True)
    noise.kde_nll(point, references, 0.5).backward()
    torch.testing.assert_close(point.grad, point.detach() / 0.25)


def test_kde_posterior_is_exact_in_high_dimensions():
    generator = torch.Generator().manual_seed(8)
    reference = torch.randn(1, 24_576, generator=generator)
    point = reference + 0.5 * torch.randn(1, 24_576, generator=generator)
    logit = noise.kde_posterior_logit(point, reference, 0.5, 0.501)
    exact = noise.kde_posterior_logit(point.double(), reference.double(), 0.5, 0.501)
    assert logit.dtype == torch.float32
    assert logit.item() == pytest.approx(exact.item(), abs=1e-3)


def test_soft_labels_averaged_over_their_makers_are_the_kde_posterior():
    """No sample needs to be far from the others: the labels average to Eq. 4 exactly (here by importance weights)."""
    references = torch.tensor([[0.0], [0.6], [0.9]], dtype=torch.float64)
    point, sigma_in, sigma_out = torch.tensor([[0.4]], dtype=torch.float64), 0.3, 0.8
    kernels = {s: torch.exp(noise.Gaussian().log_prob(point - references, s)) for s in (sigma_in, sigma_out)}
    labels = noise.soft_label(point - references, sigma_in, sigma_out)
    made_by = kernels[sigma_in] + kernels[sigma_out]
    average = (labels * made_by).sum() / made_by.sum()
    exact = noise.kde_posterior(point, references, sigma_in, sigma_out).item()
    assert average.item() == pytest.approx(exact, rel=1e-10)


def test_losses_come_from_logits_and_stay_finite():
    logits = torch.tensor([-200.0, 0.0, 200.0])
    assert noise.contrastive_loss(logits, torch.tensor([1.0, 0.5, 0.0])).item() == pytest.approx(
        (400 + math.log(2)) / 3
    )
    assert noise.in_distribution_loss(logits).item() == pytest.approx((200 + math.log(2)) / 3)


@pytest.mark.parametrize(
    ("sigma_in", "sigma_out"), [(1.0, 1.0), (2.0, 1.0), (-0.1, 1.0), (0.1, math.inf), (math.nan, 1.0), (0.0, 0.0)]
)
def test_bad_scales_are_refused(sigma_in, sigma_out):
    with pytest.raises(InputError, match=r"sigma_(in|out)"):
        noise.soft_label_logit(torch.zeros(2, 3), sigma_in, sigma_out)
    with pytest.raises(InputError, match=r"sigma_(in|out)"):
        noise.in_distribution_radius(sigma_in, sigma_out, 4)


def test_bad_shapes_and_names_are_refused():
    with pytest.raises(InputError, match="vectors"):
        noise.soft_label_logit(torch.tensor(1.0), 0.1, 0.2)
    with pytest.raises(InputError, match="floating-point"):
        noise.soft_label_logit(torch.zeros(2, 3, dtype=torch.long), 0.1, 0.2)
    with pytest.raises(InputError, match=r"\(4, 3\) and \(5, 2\)"):
        noise.kde_log_density(torch.zeros(4, 3), torch.zeros(5, 2), 1.0)
    with pytest.raises(InputError, match="did you mean 'gaussian'"):
        noise.family("gausian")
    with pytest.raises(InputError, match="df > 2"):
        noise.StudentT(df=2)
    with pytest.raises(InputError, match="beta"):
        noise.expected_label(0.5, 16)
    for references in (torch.zeros(0, 3), torch.zeros(2, 3, dtype=torch.long)):
        with pytest.raises(InputError, match="references"):
            noise.kde_log_density(torch.zeros(4, 3), references, 1.0)
    for sigma in (-1.0, math.nan, math.inf):
        with pytest.raises(InputError, match="sigma"):
            noise.Gaussian().sample(torch.zeros(2), sigma)
    with pytest.raises(InputError, match="no noise family 3"):
        noise.family(3)
    with pytest.raises(InputError, match="tolerance"):
        noise.smallest_beta(16, 0.6)
    with pytest.raises(InputError, match="dim"):
        noise.expected_label(2.0, 0)
