from .families import NOISES, Gaussian, Laplace, Noise, StudentT, check_scales, family
from .kde import kde_log_density, kde_nll, kde_posterior, kde_posterior_logit
from .labels import (
    contrastive_loss,
    in_distribution_loss,
    in_distribution_radius,
    soft_label,
    soft_label_logit,
    view_logit,
)
from .scales import bayes_floor, expected_label, expected_label_as_printed, expected_label_corrected, smallest_beta

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
    "view_logit",
]
