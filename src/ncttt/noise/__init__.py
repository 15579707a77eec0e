"""The mathematics of noise contrast: noise families, soft labels, the choice of their scales, and the KDE behind it.

Equation numbers are those of the NC-TTT paper. A noise vector has `dim` independent coordinates in the last axis;
`sigma` is always the standard deviation of one coordinate, in every family, so that families can be exchanged.
"""

from ncttt.noise.checks import check_scales
from ncttt.noise.families import NOISES, Gaussian, Laplace, Noise, StudentT, family
from ncttt.noise.kde import kde_log_density, kde_nll, kde_posterior, kde_posterior_logit
from ncttt.noise.labels import (
    contrastive_loss,
    in_distribution_loss,
    in_distribution_radius,
    soft_label,
    soft_label_logit,
)
from ncttt.noise.scales import (
    bayes_floor,
    expected_label,
    expected_label_as_printed,
    expected_label_corrected,
    smallest_beta,
)

__all__ = [
    "NOISES",
    "Gaussian",
    "Laplace",
    "Noise",
    "StudentT",
    "bayes_floor",
    "check_scales",
    "contrastive_loss",
    "expected_label",
    "expected_label_as_printed",
    "expected_label_corrected",
    "family",
    "in_distribution_loss",
    "in_distribution_radius",
    "kde_log_density",
    "kde_nll",
    "kde_posterior",
    "kde_posterior_logit",
    "smallest_beta",
    "soft_label",
    "soft_label_logit",
]
