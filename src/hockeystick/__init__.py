"""Certified two-sided privacy accounting.

What ran (mechanisms and counts) goes in; the privacy curve delta(eps), its inverse and what is read off them
come out as `Bound`s: lower <= truth <= upper, floating-point rounding included.
"""

from typing import TYPE_CHECKING, Any

from . import inner as inner  # whose steps enter the table of pairs
from .accountant import Accountant
from .arrays import compose_arrays
from .batch import delta_batch, epsilon_batch
from .bound import AccuracyError, Bound, Budget, DomainError, HockeystickError, LimitError, SoundnessError
from .query import delta, epsilon, log_delta
from .routes.saddlepoint import SaddlepointEstimate, saddlepoint_delta
from .what.allocation import balls_and_bins, random_allocation
from .what.batches import cyclic_poisson, truncated_poisson_subsampled, without_replacement
from .what.discrete import (
    approx_dp,
    discrete_gaussian,
    discrete_laplace,
    k_ary_randomized_response,
    pure_dp,
    randomized_response,
)
from .what.given import from_curve, from_loss_cdf, from_pmf, gaussian_mixture, public_mixture, register
from .what.groups import group
from .what.matrix import failure, matrix_mechanism
from .what.mechanism import Mechanism, Run, compose, gaussian, laplace, poisson_subsampled
from .what.ranged import bounded_range, exponential_mechanism, permute_and_flip
from .what.replacement import with_replacement
from .what.selection import select
from .what.shuffling import shuffled
from .what.topk import top_k

if TYPE_CHECKING:
    from . import plot as plot
    from .attacks import (
        attribute_advantage,
        one_run_audit,
        one_run_epsilon_lower,
        reconstruction,
        reidentification,
    )
    from .calibration import Calibration, calibrate, max_steps, noise_multiplier
    from .drawn import draw_balls_and_bins, draw_min_separation
    from .explanation import Explanation, explain
    from .individual.epsilons import IndividualEpsilons, individual_epsilons
    from .individual.filters import GDPFilter
    from .individual.odometer import GDPOdometer
    from .individual.records import IndividualGDPFilter
    from .individual.renyi import RDPFilter
    from .judge import Verdict, verify
    from .logs import read_log
    from .risk import advantage, bayes_risk, posterior, tradeoff, true_positive_rate
    from .risk_gdp import gdp_regret, mu_gdp
    from .routes.edgeworth import aea_delta, aea_epsilon, eeai_delta, eeai_epsilon, prawitz_delta, prawitz_epsilon
    from .routes.moments import gdp_delta, gdp_epsilon, gdp_mu, moments_delta_upper, moments_epsilon_upper, rdp
    from .sampled import monte_carlo
    from .state import from_dict, from_json, to_dict, to_json
    from .store import StoreError

__version__ = "0.1.0"

# Loaded at first use: rooms that most programs do not enter; sqlite3 alone would double the time of the import.
_LAZY = {
    name: module
    for module, names in {
        "attacks": "attribute_advantage one_run_audit one_run_epsilon_lower reconstruction reidentification",
        "calibration": "Calibration calibrate max_steps noise_multiplier",
        "drawn": "draw_balls_and_bins draw_min_separation",
        "explanation": "Explanation explain",
        "individual.epsilons": "IndividualEpsilons individual_epsilons",
        "individual.filters": "GDPFilter",
        "individual.renyi": "RDPFilter",
        "individual.odometer": "GDPOdometer",
        "individual.records": "IndividualGDPFilter",
        "store": "StoreError",
        "judge": "Verdict verify",
        "logs": "read_log",
        "risk": "advantage bayes_risk posterior tradeoff true_positive_rate",
        "risk_gdp": "gdp_regret mu_gdp",
        "routes.edgeworth": "aea_delta aea_epsilon eeai_delta eeai_epsilon prawitz_delta prawitz_epsilon",
        "routes.moments": "gdp_delta gdp_epsilon gdp_mu moments_delta_upper moments_epsilon_upper rdp",
        "sampled": "monte_carlo",
        "state": "from_dict from_json to_dict to_json",
    }.items()
    for name in names.split()
}


if not TYPE_CHECKING:  # a checker would take every name for one of the module

    def __getattr__(name: str) -> Any:
        from importlib import import_module

        if name == "plot":
            return import_module(".plot", __name__)
        if name not in _LAZY:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(f".{_LAZY[name]}", __name__), name)
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *_LAZY, "plot"})


__all__ = [
    "Accountant",
    "AccuracyError",
    "Bound",
    "Budget",
    "Calibration",
    "DomainError",
    "Explanation",
    "GDPFilter",
    "GDPOdometer",
    "HockeystickError",
    "IndividualEpsilons",
    "IndividualGDPFilter",
    "LimitError",
    "Mechanism",
    "RDPFilter",
    "Run",
    "SaddlepointEstimate",
    "SoundnessError",
    "StoreError",
    "Verdict",
    "advantage",
    "aea_delta",
    "aea_epsilon",
    "approx_dp",
    "attribute_advantage",
    "balls_and_bins",
    "bayes_risk",
    "bounded_range",
    "calibrate",
    "compose",
    "compose_arrays",
    "cyclic_poisson",
    "delta",
    "delta_batch",
    "discrete_gaussian",
    "discrete_laplace",
    "draw_balls_and_bins",
    "draw_min_separation",
    "eeai_delta",
    "eeai_epsilon",
    "epsilon",
    "epsilon_batch",
    "explain",
    "exponential_mechanism",
    "failure",
    "from_curve",
    "from_dict",
    "from_json",
    "from_loss_cdf",
    "from_pmf",
    "gaussian",
    "gaussian_mixture",
    "gdp_delta",
    "gdp_epsilon",
    "gdp_mu",
    "gdp_regret",
    "group",
    "individual_epsilons",
    "k_ary_randomized_response",
    "laplace",
    "log_delta",
    "matrix_mechanism",
    "max_steps",
    "moments_delta_upper",
    "moments_epsilon_upper",
    "monte_carlo",
    "mu_gdp",
    "noise_multiplier",
    "one_run_audit",
    "one_run_epsilon_lower",
    "permute_and_flip",
    "poisson_subsampled",
    "posterior",
    "prawitz_delta",
    "prawitz_epsilon",
    "public_mixture",
    "pure_dp",
    "random_allocation",
    "randomized_response",
    "rdp",
    "read_log",
    "reconstruction",
    "register",
    "reidentification",
    "saddlepoint_delta",
    "select",
    "shuffled",
    "to_dict",
    "to_json",
    "top_k",
    "tradeoff",
    "true_positive_rate",
    "truncated_poisson_subsampled",
    "verify",
    "with_replacement",
    "without_replacement",
]
