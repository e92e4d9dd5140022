"""Every event type of dp_accounting: our interval beside its PLD and RDP accountants, with the truth where it is known.

    python benchmarks/events_table.py [--markdown]

eps at delta = 1e-5. A peer's "-" is an event that it does not support. Each answer runs in a process of its own,
stopped after 60 s. Under the table stands why a peer is below our lower end, or more than 1% above our upper."""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from typing import NamedTuple

TIMEOUT_S = 60
DELTA = 1e-5
ADD, ONE, ZERO = "ADD_OR_REMOVE_ONE", "REPLACE_ONE", "REPLACE_SPECIAL"


class Row(NamedTuple):
    """The event, written without the "DpEvent" of the class names, the relation, the true eps (None: unknown)."""

    event: str
    relation: str
    truth: float | None = None


def gaussian(mu: float) -> float:
    """eps of the Gaussian curve of `mu` at DELTA, by bisection in 40 digits."""
    import mpmath as mp

    with mp.workdps(40):
        lo, hi = mp.mpf(0), mp.mpf(100)
        for _ in range(120):
            eps = (lo + hi) / 2
            value = mp.ncdf(mu / 2 - eps / mu) - mp.e**eps * mp.ncdf(-mu / 2 - eps / mu)
            lo, hi = (eps, hi) if value > DELTA else (lo, eps)
        return float(lo)


def responses(p: float, buckets: int, count: int) -> float:
    """eps of `count` randomised responses under replace-one: losses -e0, 0, e0, convolved in 40 digits."""
    import mpmath as mp

    with mp.workdps(40):
        b = mp.mpf(p) / buckets
        a, e0, law = 1 - mp.mpf(p) + b, mp.log((1 - mp.mpf(p) + b) / b), {0: mp.mpf(1)}
        for _ in range(count):
            new: dict = {}
            for j, mass in law.items():
                for step, q in ((1, a), (0, 1 - a - b), (-1, b)):
                    new[j + step] = new.get(j + step, 0) + mass * q
            law = new
        lo, hi = mp.mpf(0), count * e0
        for _ in range(120):
            eps = (lo + hi) / 2
            value = sum(mass * (1 - mp.e ** (eps - j * e0)) for j, mass in law.items() if j * e0 > eps)
            lo, hi = (eps, hi) if value > DELTA else (lo, eps)
        return float(lo)


def rows() -> list[Row]:
    dpsgd = "SelfComposed(PoissonSampled(0.01, Gaussian(1.0)), 1000)"
    return [
        Row("SelfComposed(Gaussian(2.0), 4)", ADD, gaussian(1.0)),
        Row("SelfComposed(Gaussian(2.0), 4)", ONE, gaussian(2.0)),
        Row(dpsgd, ADD, 1.828236666516577),
        Row(dpsgd, ONE),
        Row(dpsgd, ZERO, 1.828236666516577),
        Row("PoissonSampled(0.1, Composed([Gaussian(2.0)] * 4))", ADD),
        Row("PoissonSampled(0.5, PoissonSampled(0.2, Gaussian(1.0)))", ADD),
        Row("Laplace(1.0)", ADD, 1 + 2 * math.log1p(-DELTA)),
        Row("SelfComposed(Laplace(3.0), 10)", ADD),
        Row("SelfComposed(PoissonSampled(0.1, Laplace(1.0)), 20)", ADD),
        Row("SelfComposed(DiscreteLaplace(0.5, 1), 10)", ADD),
        Row("SelfComposed(RandomizedResponse(0.5, 2), 10)", ONE, responses(0.5, 2, 10)),
        Row("SelfComposed(RandomizedResponse(0.5, 2), 10)", ZERO),
        Row("Composed([Gaussian(3.0), Laplace(2.0)])", ADD),
        Row("MixtureOfGaussians(1.0, [0.0, 1.0], [0.9, 0.1])", ADD),
        Row("MixtureOfGaussians(1.0, [0.0, 1.0, 2.0], [0.8, 0.15, 0.05])", ADD),
        Row("SelfComposed(TruncatedSubsampledGaussian(1000, 0.01, 20, 1.0), 10)", ADD),
        Row("SelfComposed(SampledWithoutReplacement(1000, 10, Gaussian(2.0)), 10)", ONE),
        Row("SampledWithReplacement(1000, 10, Gaussian(2.0))", ONE),
        Row("SingleEpochTreeAggregation(2.0, 7)", ZERO, gaussian(math.sqrt(3) / 2)),
        Row("RepeatAndSelect(Laplace(2.0), 10.0, 1.0)", ADD),
        Row("RepeatAndSelect(Gaussian(2.0), 10.0, 1.0)", ADD),
        Row("ZC(0.1)", ADD),
        Row("Composed([ZC(0.1), Laplace(2.0)])", ADD),
        Row("NonPrivate()", ADD, math.inf),
        Row("Unsupported()", ADD),
    ]


RENYI = "a Renyi divergence bounds the curve, it does not give it"
HALVED = "a replaced record moves a sum of norms at most C by up to 2C; this accountant moves it by C"
NOTES = {
    ("PLD", "TruncatedSubsampledGaussian"): "the truncation is bounded by a pair that is not the worst case itself",
    ("RDP", "SelfComposed(Gaussian(2.0), 4)"): HALVED,
    ("RDP", "SampledWithoutReplacement"): HALVED,
    ("PLD", "RandomizedResponse"): "the count of randomised responses is dropped",
}
WORDS = {ADD: "add or remove", ONE: "replace", ZERO: "zero out"}


def reason(who: str, event: str, theirs: float, ours: tuple[float, float]) -> str | None:
    """Why a peer is below our lower end, or more than 1% above our upper; None where it is neither."""
    below = theirs < ours[0] * (1 - 1e-9)
    if not below and theirs <= ours[1] * 1.01:
        return None
    known = next((text for (peer, part), text in NOTES.items() if peer == who and part in event), "to be explained")
    return f"{known}: too small" if below else f"{RENYI if who == 'RDP' else known}: larger"


def interval(ours: tuple[float, float]) -> str:
    low, high = (f"{end:.7g}" for end in ours)
    return low if low == high else f"{low} to {high}"


def child(who: str, event: str, relation: str) -> None:
    """Print [lower, upper], or null where the event is not supported."""
    import dp_accounting as dpa
    from dp_accounting import dp_event as ev

    names = {name.removesuffix("DpEvent"): value for name, value in vars(ev).items() if name.endswith("DpEvent")}
    event = eval(event, names)
    relation = dpa.NeighboringRelation[relation]
    if who == "hockeystick":
        from hockeystick.adapters.dp_accounting import HockeystickAccountant

        accountant = HockeystickAccountant(relation)
        if not accountant.supports(event):
            print("null")
            return
        bound = accountant.compose(event).epsilon_bound(DELTA)
        print(json.dumps([repr(bound.lower), repr(bound.upper)]))
        return
    accountant = (dpa.pld.PLDAccountant if who == "PLD" else dpa.rdp.RdpAccountant)(neighboring_relation=relation)
    answer = repr(float(accountant.compose(event).get_epsilon(DELTA))) if accountant.supports(event) else None
    print(json.dumps(answer and [answer, answer]))


def ask(who: str, row: Row) -> tuple[float, float] | str:
    command = [sys.executable, "-W", "ignore", __file__, "--child", who, row.event, row.relation]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return f"over {TIMEOUT_S} s"
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["failed"])[-1][:60]
    answer = json.loads(done.stdout.splitlines()[-1])
    return "-" if answer is None else (float(answer[0]), float(answer[1]))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        child(*args.child)
        return
    table, reasons = [["event", "relation", "hockeystick", "PLD", "RDP", "truth"]], []
    for row in rows():
        ours = ask("hockeystick", row)
        cells = ["refused" if ours == "-" else ours if isinstance(ours, str) else interval(ours)]
        if not isinstance(ours, str) and row.truth is not None:
            assert ours[0] <= row.truth * (1 + 1e-14) and ours[1] >= row.truth * (1 - 1e-14), (row, ours)
        for who in ("PLD", "RDP"):
            theirs = ask(who, row)
            cells.append(theirs if isinstance(theirs, str) else f"{theirs[0]:.7g}")
            why = None if isinstance(theirs, str) or isinstance(ours, str) else reason(who, row.event, theirs[0], ours)
            if why:
                reasons += [why] if why not in reasons else []
                cells[-1] += f" ({reasons.index(why) + 1})"
        cells.append("" if row.truth is None else f"{row.truth:.7g}")
        table.append([f"`{row.event}`", WORDS[row.relation], *cells])
        if not args.markdown:
            print(
                "  ".join(f"{cell:34s}" if i < 1 else f"{cell:20s}" for i, cell in enumerate(table[-1])).rstrip(),
                flush=True,
            )
    if args.markdown:
        for i, line in enumerate(table):
            print("| " + " | ".join(line) + " |")
            if not i:
                print("|" + "---|" * len(line))
    print("\n" + "; ".join(f"({i + 1}) {why}" for i, why in enumerate(reasons)) + ".")


if __name__ == "__main__":
    main()
