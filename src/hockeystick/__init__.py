"""Certified two-sided privacy accounting.

What ran (mechanisms and counts) goes in; the privacy curve delta(eps), its inverse and what is read off them
come out as `Bound`s: lower <= truth <= upper, floating-point rounding included.
"""

from .accountant import Accountant
from .batches import cyclic_poisson, truncated_poisson_subsampled, without_replacement
from .bound import AccuracyError, Bound, Budget, DomainError, HockeystickError
from .discrete import approx_dp, discrete_gaussian, discrete_laplace, k_ary_randomized_response, pure_dp, randomized_response
from .given import from_curve, from_loss_cdf, from_pmf, gaussian_mixture, public_mixture
from .mechanism import Run, compose, gaussian, laplace, poisson_subsampled
from .query import delta, epsilon, log_delta
from .routes.moments import gdp_delta, gdp_epsilon, gdp_mu, moments_delta_upper, moments_epsilon_upper, rdp
from .routes.saddlepoint import SaddlepointEstimate, saddlepoint_delta

__version__ = "0.1.0"

__all__ = [
    "Accountant",
    "AccuracyError",
    "Bound",
    "Budget",
    "DomainError",
    "HockeystickError",
    "Run",
    "SaddlepointEstimate",
    "approx_dp",
    "compose",
    "cyclic_poisson",
    "delta",
    "discrete_gaussian",
    "discrete_laplace",
    "epsilon",
    "from_curve",
    "from_loss_cdf",
    "from_pmf",
    "gaussian",
    "gaussian_mixture",
    "gdp_delta",
    "gdp_epsilon",
    "gdp_mu",
    "k_ary_randomized_response",
    "laplace",
    "log_delta",
    "moments_delta_upper",
    "moments_epsilon_upper",
    "poisson_subsampled",
    "public_mixture",
    "pure_dp",
    "randomized_response",
    "rdp",
    "saddlepoint_delta",
    "truncated_poisson_subsampled",
    "without_replacement",
]
