"""Certified two-sided privacy accounting.

What ran (mechanisms and counts) goes in; the privacy curve delta(eps), its inverse and what is read off them
come out as `Bound`s: lower <= truth <= upper, floating-point rounding included.
"""

from .accountant import Accountant
from .bound import AccuracyError, Bound, Budget, DomainError, HockeystickError
from .mechanism import Run, compose, gaussian, poisson_subsampled
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
    "compose",
    "delta",
    "epsilon",
    "gaussian",
    "gdp_delta",
    "gdp_epsilon",
    "gdp_mu",
    "log_delta",
    "moments_delta_upper",
    "moments_epsilon_upper",
    "poisson_subsampled",
    "rdp",
    "saddlepoint_delta",
]
