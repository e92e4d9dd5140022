"""Individual accounting: filters, odometers, per-record epsilons."""

from ..store import StoreError
from .dpsgd import mu_from_norms, norms_of_all
from .epsilons import IndividualEpsilons, individual_epsilons
from .filters import GDPFilter
from .heuristic import FittedMu, fit_mu
from .levels import NoiseLevels
from .odometer import GDPOdometer
from .records import IndividualGDPFilter
from .renyi import RDPFilter

__all__ = [
    "FittedMu",
    "GDPFilter",
    "GDPOdometer",
    "IndividualEpsilons",
    "IndividualGDPFilter",
    "NoiseLevels",
    "RDPFilter",
    "StoreError",
    "fit_mu",
    "individual_epsilons",
    "mu_from_norms",
    "norms_of_all",
]
