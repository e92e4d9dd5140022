"""Calls of other libraries and ours side by side, both really made: the table of docs/guides/moving.md.

    python benchmarks/side_by_side.py

Names in the calls are those of SETTING and of each library's IMPORTS. A library that is not installed leaves its
answers out."""

from __future__ import annotations

import hockeystick as hs

SETTING = """
step = hs.poisson_subsampled(hs.gaussian(1.0), 0.01)
dpsgd = lambda sigma: hs.poisson_subsampled(hs.gaussian(sigma), 0.01) * 1000
"""
IMPORTS = {
    "dp_accounting": """
import dp_accounting as dpa
from dp_accounting.dp_event import RepeatAndSelectDpEvent
from dp_accounting.pld import PLDAccountant, privacy_loss_distribution as plds
from dp_accounting.rdp import RdpAccountant
from hockeystick.adapters.dp_accounting import HockeystickAccountant
make_event = lambda s: dpa.SelfComposedDpEvent(dpa.PoissonSampledDpEvent(0.01, dpa.GaussianDpEvent(s)), 1000)
event = make_event(1.0)
""",
    "prv_accountant": """
from prv_accountant import PRVAccountant, PoissonSubsampledGaussianMechanism
from prv_accountant.dpsgd import find_noise_multiplier
p = PoissonSubsampledGaussianMechanism(noise_multiplier=1.0, sampling_probability=0.01)
""",
    "Opacus": """
from opacus.accountants import create_accountant
from opacus.accountants.utils import get_noise_multiplier
import hockeystick.adapters.opacus
def epsilon_of(name):
    accountant = create_accountant(name)
    accountant.history = [(1.0, 0.01, 1000)]
    return accountant.get_epsilon(delta=1e-5)
""",
    "autodp": """
from autodp.mechanism_zoo import ExponentialMechanism
from autodp.transformer_zoo import Composition
""",
    "riskcal": """
from dp_accounting.pld import privacy_loss_distribution as plds
from riskcal.analysis import get_advantage_from_pld, get_beta_from_pld
from riskcal.calibration.dpsgd import find_noise_multiplier_for_advantage
pld = plds.from_gaussian_mechanism(1.0, sampling_prob=0.01).self_compose(1000)
""",
}
CALLS = [
    (
        "dp_accounting",
        "PLDAccountant().compose(event).get_epsilon(1e-5)",
        "HockeystickAccountant().compose(event).get_epsilon(1e-5)",
    ),
    (
        "dp_accounting",
        "dpa.calibrate_dp_mechanism(PLDAccountant, make_event, 1.0, 1e-5)",
        "dpa.calibrate_dp_mechanism(HockeystickAccountant, make_event, 1.0, 1e-5)",
    ),
    (
        "dp_accounting",
        "plds.from_laplace_mechanism(2.0).self_compose(5).get_delta_for_epsilon(1.0)",
        "hs.delta(hs.laplace(2.0) * 5, 1.0).upper",
    ),
    (
        "dp_accounting",
        "RdpAccountant().compose(dpa.ZCDpEvent(100 * 0.1**2 / 8)).get_epsilon(1e-6)",
        "hs.epsilon(hs.top_k(0.1, 100), 1e-6)",
    ),
    (
        "autodp",
        "Composition()([ExponentialMechanism(0.5)], [10]).get_approxDP(1e-6)",
        "hs.epsilon(hs.top_k(0.5, 10), 1e-6)",
    ),
    (
        "dp_accounting",
        "RdpAccountant().compose(RepeatAndSelectDpEvent(dpa.GaussianDpEvent(2.0), 10.0, 1.0)).get_epsilon(1e-5)",
        "hs.epsilon(hs.select(hs.gaussian(2.0), mean=10), 1e-5).upper",
    ),
    (
        "prv_accountant",
        (
            "PRVAccountant(prvs=[p], max_self_compositions=[1000], eps_error=0.01,"
            " delta_error=1e-8).compute_epsilon(1e-5, [1000])"
        ),
        "hs.epsilon(step * 1000, 1e-5)",
    ),
    (
        "prv_accountant",
        (
            "find_noise_multiplier(sampling_probability=0.01, num_steps=1000, target_epsilon=1, target_delta=1e-5,"
            " eps_error=0.1)"
        ),
        "hs.noise_multiplier(q=0.01, steps=1000, eps=1.0, delta=1e-5).value",
    ),
    ("Opacus", 'epsilon_of("prv")', 'epsilon_of("hockeystick")'),
    (
        "Opacus",
        "get_noise_multiplier(target_epsilon=1.0, target_delta=1e-5, sample_rate=0.01, steps=1000)",
        (
            "get_noise_multiplier(target_epsilon=1.0, target_delta=1e-5, sample_rate=0.01, steps=1000,"
            ' accountant="hockeystick")'
        ),
    ),
    ("riskcal", "get_beta_from_pld(pld, 1e-6)", "hs.tradeoff(step * 1000, 1e-6).lower"),
    ("riskcal", "get_advantage_from_pld(pld)", "hs.advantage(step * 1000).upper"),
    (
        "riskcal",
        "find_noise_multiplier_for_advantage(advantage=0.1, sample_rate=0.01, num_steps=1000)",
        "hs.calibrate(dpsgd, over=(0.3, 100.0), advantage=0.1).value",
    ),
]


def shown(value) -> str:
    if isinstance(value, hs.Bound):
        value = value.lower, value.estimate, value.upper
    return ", ".join(f"{x:.7g}" for x in value) if isinstance(value, tuple) else f"{value:.10g}"


def main():
    names: dict = {"hs": hs}
    exec(SETTING, names)
    spaces: dict = {}
    print("| from | their call | gives | ours | gives |\n|---|---|---|---|---|")
    for library, theirs, ours in CALLS:
        if library not in spaces:
            space = spaces[library] = dict(names)
            try:
                exec(IMPORTS[library], space)
            except ImportError:
                spaces[library] = None
        space = spaces[library]
        answers = [shown(eval(call, space)) if space else "" for call in (theirs, ours)]
        print(f"| {library} | `{theirs}` | {answers[0]} | `{ours}` | {answers[1]} |", flush=True)


if __name__ == "__main__":
    main()
