"""The route `edgeworth`: accuracy of the estimates, width and time of the certified interval; every answer is checked
first.

    python benchmarks/bench_edgeworth.py

Truth: the contour route's certified interval (Gaussian steps), the truth table's rows (Laplace steps). Targets that are
missed are listed at the end."""

from __future__ import annotations

import math

import numpy as np

import cases
import hockeystick as hs
import machine
from hockeystick.routes import edgeworth, eeai

MISSED: list[str] = []


def report(what: str, seconds: float, limit: float | None = None) -> None:
    missed = limit is not None and seconds > limit
    bound = "" if limit is None else f"  (at most {machine.pretty(limit)}{': MISSED' if missed else ''})"
    print(f"{what:88s} {machine.pretty(seconds):>10s}{bound}", flush=True)
    if missed:
        MISSED.append(f"{what}: {machine.pretty(seconds)}, at most {machine.pretty(limit)} wanted")


def deltas(n: int, base: float = 1e-5) -> list[float]:
    return [base * (1 + i / (8 * n)) for i in range(n)]


def run_of(k: int):
    return hs.poisson_subsampled(hs.gaussian(1.0), 0.01) * k


def growing_k() -> None:
    """All deltas different, REMOVE and ADD both: order 3 of the estimate, runs built anew; the certified query, a run
    kept."""
    for e in range(3, 10):
        k, n = 10**e, 300
        true = hs.epsilon(run_of(k), 1e-5, route="contour")
        estimate, bound = edgeworth.aea_epsilon(run_of(k), 1e-5), hs.epsilon(run_of(k), 1e-5, route="edgeworth")
        assert (
            bound.certified
            and bound.lower <= true.upper
            and true.lower <= bound.upper
            and bound.width < 1e-9 * bound.upper
        )
        error = abs(estimate / true.estimate - 1)
        assert error < 0.1
        took = machine.seconds(lambda d, k=k: edgeworth.aea_epsilon(run_of(k), d), deltas(n))
        report(f"k=1e{e}: estimate, order 3 (relative error {error:.1e})", took, 60e-6)
        run = run_of(k)
        took = machine.seconds(lambda d, run=run: hs.epsilon(run, d, route="edgeworth"), deltas(n))
        report(f"k=1e{e}: certified eps (relative width {bound.width / bound.upper:.1e})", took, 60e-6)
        took = machine.seconds(lambda d, run=run: hs.epsilon(run, d, route="contour"), deltas(n))
        report(f"k=1e{e}: certified eps by the contour, for comparison", took)


def rates() -> None:
    """The certified query over sigma, q and k, both directions, runs kept: microseconds, relative width."""
    ks = [10**e for e in (2, 3, 4, 5, 7, 9)]
    print("certified eps, microseconds (width), both directions; sigma q | k=" + " ".join(f"{k:.0e}" for k in ks))
    for sigma in (0.5, 1.0, 2.0, 5.0, 10.0):
        for q in (1e-3, 1e-2, 1e-1):
            row = []
            for k in ks:
                run = hs.poisson_subsampled(hs.gaussian(sigma), q) * k
                true, bound = hs.epsilon(run, 1e-5), hs.epsilon(run, 1e-5, route="edgeworth")
                assert bound.lower <= true.upper and true.lower <= bound.upper
                took = machine.seconds(lambda d, run=run: hs.epsilon(run, d, route="edgeworth"), deltas(100))
                row.append(f"{took * 1e6:.0f} ({bound.width / max(bound.upper, 1e-300):.0e})")
            print(f"  {sigma:g} {q:g} |", " ".join(row), flush=True)


def laplace() -> None:
    """Subsampled Laplace against the truth table's rows."""
    for name, (m, q, k, add), eps, true in (
        ("sl-k1000-remove", (1.0, 0.01, 1000, 0), 0.5, 6.93983694809427e-3),
        ("sl-k1000-add", (1.0, 0.01, 1000, 1), 0.5, 6.26324147501912e-3),
        ("sl-k1e5-remove", (0.5, 0.002, 10**5, 0), 2.2891, 1.00165068388944787e-15),
        ("la-b20.0-k10000", (0.05, 1.0, 10**4, 0), 43.164, 1.00020534512089579e-10),
    ):
        steps = edgeworth.loss_steps((m, q, k, 1))
        low, _, high, *_ = edgeworth.point(steps, add, eps)
        assert math.exp(low) <= true * (1 + 1e-14) and true * (1 - 1e-14) <= math.exp(high) and high - low < 1e-10
        took = machine.seconds(
            lambda e, s=steps, a=add: edgeworth.point(s, a, e), [eps * (1 + i * 1e-5) for i in range(200)]
        )
        report(f"{name}: certified delta (relative width {high - low:.1e})", took)


def distinct(n: int, limit: float) -> None:
    problem = cases.DISTINCT[n]
    true = cases.truth(problem)
    parts = [(hs.poisson_subsampled(hs.gaussian(s.sigma), s.q), s.k) for s in problem.steps]
    low, _, high, *_ = edgeworth.root(hs.compose(*parts), 0, math.log(1e-5))
    assert low <= true * (1 + 1e-14) and true * (1 - 1e-14) <= high
    run, rows = hs.compose(*parts), [(1 / s.sigma, s.q, s.k, 0) for s in problem.steps]
    estimate = edgeworth.aea_epsilon(run, 1e-5)
    assert abs(estimate / true - 1) < 0.1 and edgeworth.aea_epsilon(edgeworth.loss_steps(*rows), 1e-5) == estimate
    took = machine.seconds(lambda d: edgeworth.aea_epsilon(edgeworth.loss_steps(*rows), d), deltas(10))
    report(f"{n} distinct steps: estimate, order 3 (relative error {abs(estimate / true - 1):.1e})", took, limit)
    for direction in ("remove", "both"):
        bound = hs.epsilon(run, 1e-5, route="edgeworth", direction=direction)
        assert bound.certified and bound.lower <= true * (1 + 1e-14) and true * (1 - 1e-14) <= bound.upper
        took = machine.seconds(
            lambda d, side=direction: hs.epsilon(run, d, route="edgeworth", direction=side), deltas(25)
        )
        report(f"{n} distinct steps: certified eps, {direction} (relative width {bound.width / true:.1e})", took, limit)


def orders() -> None:
    """Largest error of delta over mean -1 .. +3 deviations, by form and order."""
    print("largest |estimate - delta| over -1 to 3 deviations; q=0.01, sigma=0.8, REMOVE")
    for k in (10**3, 10**4, 10**5):
        run = hs.poisson_subsampled(hs.gaussian(0.8), 0.01) * k
        Y, _ = edgeworth.steps_of(run).totals[0]
        eps = Y[0] + math.sqrt(Y[1]) * np.linspace(-1, 3, 25)
        true = hs.delta(run, eps, direction="remove", route="contour")
        assert true.certified
        for form in edgeworth.FORMS:
            errors = [
                np.abs(edgeworth.aea_delta(run, eps, direction="remove", order=n, form=form) - true.estimate).max()
                for n in range(4)
            ]
            print(f"  k={k:<7d} {form:13s}" + "".join(f" {e:9.1e}" for e in errors))


def constants() -> None:
    """D of the finite-sample interval beside the half-width of Prawitz', at the delta where a user stands."""
    print("half-widths at eps(1e-5); q=0.01, sigma=0.8, REMOVE")
    for k in (10**3, 10**5, 10**7, 10**9, 10**11):
        steps = edgeworth.loss_steps((1.25, 0.01, k, 0))
        low, mid, high, *_ = edgeworth.root(steps, 0, math.log(1e-5))
        point = edgeworth.point(steps, 0, mid)
        D = eeai.Side(steps, 0).error
        assert low <= high and D > 0
        print(f"  k=1e{round(math.log10(k)):<3d} EEAI {D:9.1e}   Prawitz {0.5e-5 * (point[2] - point[0]):9.1e}")


def main() -> None:
    print(machine.describe())
    distinct(1000, 20e-3)
    orders()
    constants()
    growing_k()
    rates()
    laplace()
    print("Missed targets:" if MISSED else "No target missed.")
    for line in MISSED:
        print(" -", line)


if __name__ == "__main__":
    main()
