"""Calibration beside other accountants, in one run: the answer is proved before it is timed.

    python benchmarks/bench_calibrate.py [--no-peers]

Problem: the noise multiplier of 1,000 steps of rate 0.01 for eps = 1 at delta = 1e-5, and how many steps sigma = 1
allows. Warm: every call differs a little, so that nothing remembered is timed. Targets that are missed are listed at
the end."""

from __future__ import annotations

import argparse
import time

import hockeystick as hs
import machine

Q, STEPS, EPS, DELTA = 0.01, 1000, 1.0, 1e-5
LIMIT_S = 2e-3


def proved(found, make_run, epsilon=EPS, delta=DELTA):
    """Both ends asked again from outside."""
    assert hs.delta(make_run(found.value), epsilon).upper <= delta < hs.delta(make_run(found.limit), epsilon).lower
    return found


def dpsgd(sigma, q=Q, k=STEPS):
    return hs.poisson_subsampled(hs.gaussian(sigma), q) * k


def google():
    import dp_accounting as dpa

    def event(sigma):
        return dpa.SelfComposedDpEvent(dpa.PoissonSampledDpEvent(Q, dpa.GaussianDpEvent(sigma)), STEPS)

    return lambda: dpa.calibrate_dp_mechanism(dpa.pld.PLDAccountant, event, EPS, DELTA)


def google_with_ours():
    import dp_accounting as dpa

    from hockeystick.adapters.dp_accounting import HockeystickAccountant

    def event(sigma):
        return dpa.SelfComposedDpEvent(dpa.PoissonSampledDpEvent(Q, dpa.GaussianDpEvent(sigma)), STEPS)

    return lambda: dpa.calibrate_dp_mechanism(HockeystickAccountant, event, EPS, DELTA)


def microsoft():
    from prv_accountant.dpsgd import find_noise_multiplier

    return lambda: find_noise_multiplier(
        sampling_probability=Q, num_steps=STEPS, target_epsilon=EPS, target_delta=DELTA, eps_error=0.01
    )


def riskcal():
    from riskcal.accountants import CTDAccountant
    from riskcal.calibration.blackbox import find_noise_multiplier_for_epsilon_delta as find

    return lambda: find(accountant=CTDAccountant, sample_rate=Q, num_steps=STEPS, epsilon=EPS, delta=DELTA)


PEERS = {
    "dp_accounting PLD": google,
    "dp_accounting's search on our accountant": google_with_ours,
    "prv_accountant": microsoft,
    "riskcal": riskcal,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-peers", action="store_true")
    args = parser.parse_args()
    print(machine.describe())
    start = time.perf_counter()
    found = hs.noise_multiplier(q=Q, steps=STEPS, epsilon=EPS, delta=DELTA)
    cold = time.perf_counter() - start
    proved(found, dpsgd)
    print(
        f"sigma in ({found.limit:.9f}, {found.value:.9f}], {found.evaluations} evaluations; cold {machine.pretty(cold)}"
    )

    def sigma(delta):
        return hs.noise_multiplier(q=Q, steps=STEPS, epsilon=EPS, delta=delta)

    near = [DELTA * (1 + i / 1000) for i in range(1, 201)]
    ours = machine.seconds(sigma, near)
    missed = [] if ours <= LIMIT_S else [f"sigma: {machine.pretty(ours)}, at most {machine.pretty(LIMIT_S)} wanted"]
    print(f"{'hockeystick, sigma':44s} {machine.pretty(ours):>10s}")
    steps = proved(hs.max_steps(sigma=1.0, q=Q, epsilon=EPS, delta=DELTA), lambda k: dpsgd(1.0, k=k))
    assert (steps.value, steps.limit) == (254, 255), steps
    took = machine.seconds(lambda d: hs.max_steps(sigma=1.0, q=Q, epsilon=EPS, delta=d), near)
    print(f"{'hockeystick, steps (254)':44s} {machine.pretty(took):>10s}")
    other = [
        ("q", lambda d: hs.calibrate(lambda q: dpsgd(2.0, q), over=(1e-4, 1.0), epsilon=EPS, delta=d), near),
        (
            "sigma for advantage 0.1",
            lambda a: hs.calibrate(dpsgd, over=(0.3, 100.0), advantage=a),
            [0.1 + i / 1e4 for i in range(50)],
        ),
        (
            "sigma for fnr 0.8 at fpr 0.01",
            lambda f: hs.calibrate(dpsgd, over=(0.3, 100.0), fnr=f, fpr=0.01, tol=1e-5),
            [0.8],
        ),
    ]
    for name, call, arguments in other:
        print(f"{'hockeystick, ' + name:44s} {machine.pretty(machine.seconds(call, arguments)):>10s}")
    for name, build in {} if args.no_peers else PEERS.items():
        try:
            call = build()
        except ImportError as error:
            print(f"{name:44s} {'left out':>10s}  ({error})")
            continue
        call()  # warm: the first call imports
        start = time.perf_counter()
        theirs = float(call())
        took = time.perf_counter() - start
        verdict = "meets the target" if hs.delta(dpsgd(theirs), EPS).upper <= DELTA else "MISSES the target"
        print(f"{name:44s} {machine.pretty(took):>10s}  sigma {theirs:.6f}, {verdict}; {took / ours:,.0f}x")
    print("Missed targets:" if missed else "No target missed.")
    for line in missed:
        print(" -", line)


if __name__ == "__main__":
    main()
