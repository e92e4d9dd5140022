"""Certified two-sided privacy accounting.

What ran (mechanisms and counts) goes in; the privacy curve delta(eps), its inverse and what is read off them
come out as `Bound`s: lower <= truth <= upper, floating-point rounding included.
"""

from .accountant import Accountant
from .batches import cyclic_poisson, truncated_poisson_subsampled, without_replacement
from .batch import delta_batch, epsilon_batch
from .bound import AccuracyError, Bound, Budget, DomainError, HockeystickError
from .calibrate import Calibration, calibrate, max_steps, noise_multiplier
from .discrete import approx_dp, discrete_gaussian, discrete_laplace, k_ary_randomized_response, pure_dp, randomized_response
from .given import from_curve, from_loss_cdf, from_pmf, gaussian_mixture, public_mixture
from .mechanism import Run, compose, gaussian, laplace, poisson_subsampled
from .query import delta, epsilon, log_delta
from .risk import advantage, bayes_risk, posterior, tradeoff, true_positive_rate
from .risk_gdp import gdp_regret, mu_gdp
from .state import from_json, to_json
from .routes.moments import gdp_delta, gdp_epsilon, gdp_mu, moments_delta_upper, moments_epsilon_upper, rdp
from .routes.saddlepoint import SaddlepointEstimate, saddlepoint_delta

__version__ = "0.1.0"

__all__ = [
    "Accountant",
    "AccuracyError",
    "Bound",
    "Budget",
    "Calibration",
    "DomainError",
    "HockeystickError",
    "Run",
    "advantage",
    "SaddlepointEstimate",
    "approx_dp",
    "bayes_risk",
    "calibrate",
    "compose",
    "cyclic_poisson",
    "delta",
    "delta_batch",
    "discrete_gaussian",
    "discrete_laplace",
    "epsilon",
    "epsilon_batch",
    "from_curve",
    "from_json",
    "from_loss_cdf",
    "from_pmf",
    "gaussian",
    "gaussian_mixture",
    "gdp_regret",
    "k_ary_randomized_response",
    "laplace",
    "log_delta",
    "max_steps",
    "mu_gdp",
    "noise_multiplier",
    "gdp_delta",
    "gdp_epsilon",
    "gdp_mu",
    "k_ary_randomized_response",
    "laplace",
    "log_delta",
    "moments_delta_upper",
    "moments_epsilon_upper",
    "poisson_subsampled",
    "posterior",
    "public_mixture",
    "pure_dp",
    "randomized_response",
    "to_json",
    "tradeoff",
    "true_positive_rate",
    "rdp",
    "saddlepoint_delta",
    "truncated_poisson_subsampled",
    "without_replacement",
]
