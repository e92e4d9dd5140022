"""Certified two-sided privacy accounting.

What ran (mechanisms and counts) goes in; the privacy curve delta(eps), its inverse and what is read off them
come out as `Bound`s: lower <= truth <= upper, floating-point rounding included.
"""

from .accountant import Accountant
from .bound import AccuracyError, Bound, Budget, DomainError, HockeystickError
from .discrete import approx_dp, discrete_gaussian, discrete_laplace, k_ary_randomized_response, pure_dp, randomized_response
from .given import from_curve, from_loss_cdf, from_pmf, gaussian_mixture, public_mixture
from .mechanism import Run, compose, gaussian, laplace, poisson_subsampled
from .query import delta, epsilon, log_delta

__version__ = "0.1.0"

# Loaded at first use: sqlite3 and the rest of this room would double the time of the import.
_LAZY = {
    "GDPFilter": "individual.filters",
    "GDPOdometer": "individual.odometer",
    "IndividualGDPFilter": "individual.records",
    "RDPFilter": "individual.filters",
    "StoreError": "individual.store",
    "individual_epsilons": "individual.epsilons",
}


def __getattr__(name: str):
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(f".{_LAZY[name]}", __name__), name)
    return value


def __dir__():
    return sorted({*globals(), *_LAZY})


__all__ = [
    "Accountant",
    "AccuracyError",
    "Bound",
    "Budget",
    "DomainError",
    "GDPFilter",
    "GDPOdometer",
    "HockeystickError",
    "IndividualGDPFilter",
    "RDPFilter",
    "Run",
    "StoreError",
    "approx_dp",
    "compose",
    "delta",
    "discrete_gaussian",
    "discrete_laplace",
    "epsilon",
    "from_curve",
    "from_loss_cdf",
    "from_pmf",
    "gaussian",
    "gaussian_mixture",
    "individual_epsilons",
    "k_ary_randomized_response",
    "laplace",
    "log_delta",
    "poisson_subsampled",
    "public_mixture",
    "pure_dp",
    "randomized_response",
]
