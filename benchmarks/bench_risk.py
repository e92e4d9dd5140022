"""Attack risk beside other accountants: the largest true positive rate at small false positive rates, and mu.

    python benchmarks/bench_risk.py

Truth: Gaussian in 50 digits; for DP-SGD our interval is checked against lines of the privacy curve. Notes say which
side of the truth a peer is on; a true positive rate below fpr, or below the truth, under-reports the risk."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np

import hockeystick as hs
import machine

RATES = (1e-12, 1e-8, 1e-7, 1e-6, 1e-4, 0.05)
GAUSSIAN = hs.gaussian(1.0)
DPSGD = hs.poisson_subsampled(hs.gaussian(1.0), 0.01) * 1000


def gaussian_tpr(fpr: float) -> float:
    with mp.workdps(50):
        return float(mp.ncdf(mp.sqrt(2) * mp.erfinv(2 * mp.mpf(fpr) - 1) + 1))


def lines(run, fpr: float) -> float:
    """An upper bound of tpr: the least of many lines delta(eps) + e^eps fpr, both directions."""
    eps = np.linspace(-1, 9, 400)
    return max(
        float((hs.delta(run, eps, direction=side).upper + np.exp(eps) * fpr).min()) for side in ("remove", "add")
    )


def peers() -> dict:
    from dp_accounting.pld import privacy_loss_distribution as plds

    laws = {"gaussian": plds.from_gaussian_mechanism(1.0)}
    laws["dpsgd"] = plds.from_gaussian_mechanism(1.0, sampling_prob=0.01).self_compose(1000)
    found = {}
    try:
        from riskcal.analysis import get_beta_from_pld

        found["riskcal"] = {
            name: lambda fpr, law=law: 1 - float(get_beta_from_pld(law, fpr)) for name, law in laws.items()
        }
    except ImportError as error:
        print(f"riskcal left out ({error})")
    try:
        from gdpnum import PLDConverter

        made = {name: PLDConverter(law) for name, law in laws.items()}
        found["gdpnum"] = {
            name: lambda fpr, law=law: 1 - float(np.ravel(law.get_beta(fpr))[0]) for name, law in made.items()
        }
        print(f"gdpnum: mu of the Gaussian of mu = 1: {float(made['gaussian'].get_mu()):.10f}")
    except ImportError as error:
        print(f"gdpnum left out ({error})")
    return found


def main():
    print(machine.describe())
    bound = hs.mu_gdp(GAUSSIAN, 1e-9)
    assert bound.lower <= 1 <= bound.upper
    print(f"hockeystick: mu of the Gaussian of mu = 1: [{bound.lower:.10f}, {bound.upper:.10f}]")
    others = peers()
    for name, run in (("gaussian", GAUSSIAN), ("dpsgd", DPSGD)):
        for fpr in RATES:
            bound = hs.true_positive_rate(run, fpr)
            truth = gaussian_tpr(fpr) if name == "gaussian" else bound.estimate
            assert fpr < bound.lower <= truth <= bound.upper <= bound.lower * (1 + 1e-6), (name, fpr)
            assert bound.lower <= lines(run, fpr) <= bound.upper * 1.001, (name, fpr)
            took = machine.seconds(
                lambda a, run=run: hs.true_positive_rate(run, a), [fpr * (1 + i / 1e4) for i in range(10)]
            )
            cells = [f"hockeystick {bound.lower:.8g} ({machine.pretty(took)})"]
            for peer, ask in others.items():
                theirs = ask[name](fpr)
                side = "below the truth" if theirs < bound.lower else "above"
                cells.append(f"{peer} {theirs:.4g}, {side}" if math.isfinite(theirs) else f"{peer} {theirs}")
            print(f"{name:9s} fpr {fpr:<6g} tpr: " + "; ".join(cells))


if __name__ == "__main__":
    main()
