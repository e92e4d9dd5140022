"""How long questions of risk take beside one delta of the same run, where losses have atoms: kind by kind, seeded.

    python benchmarks/risk_times.py [KIND ...] [--n 40] [--seed 1] [--show 3] [--tree SRC]

A line a kind of question: the deltas that it asks, and its time over that of one delta of the same run, at the median,
at 90% and at most, and the longest time. A further delta of a run mostly costs less than the first one. Each question
and each delta is about a run built anew; one delta is the mean of seven, at 0 and at the eps of delta = 1e-1, 1e-2, ..,
1e-6. Processor time."""

from __future__ import annotations

import argparse
import math
import random
import time

import machine


def drawn(dice, low: float, high: float) -> float:
    return math.exp(dice.uniform(math.log(low), math.log(high)))


def given(hs, dice):
    n = dice.randint(2, 6)
    losses = [dice.uniform(-1.5, 1.5) * drawn(dice, 0.05, 1) for _ in range(n)]
    masses = [dice.random() for _ in range(n)]
    total = math.fsum(masses)
    num = [mass / total for mass in masses]
    den = [p * math.exp(-loss) for p, loss in zip(num, losses, strict=True)]
    whole = math.fsum(den)
    return hs.from_pmf(num, [p / whole for p in den])


def few(hs, dice):
    return given(hs, dice) * int(drawn(dice, 1, 300))


def promises(hs, dice):
    step = hs.approx_dp(drawn(dice, 0.02, 1.5), drawn(dice, 1e-9, 1e-3))
    other = hs.gaussian(drawn(dice, 0.5, 10)) if dice.random() < 0.5 else hs.laplace(drawn(dice, 0.5, 10))
    return hs.compose((step, int(drawn(dice, 1, 20))), (other, int(drawn(dice, 1, 50))))


def response(hs, dice):
    return hs.randomized_response(drawn(dice, 0.05, 3)) * int(drawn(dice, 1, 100))


def choices(hs, dice):
    return hs.k_ary_randomized_response(drawn(dice, 0.05, 3), dice.randint(3, 50)) * int(drawn(dice, 1, 100))


def batches(hs, dice):
    n, q = int(drawn(dice, 1e2, 1e6)), drawn(dice, 1e-4, 0.3)
    step = hs.truncated_poisson_subsampled(
        hs.gaussian(drawn(dice, 0.3, 5)), q, dataset_size=n, max_batch=max(1, int(n * q * dice.uniform(0.7, 2)))
    )
    return step * int(drawn(dice, 1, 1e4))


def noise(hs, dice):
    return hs.laplace(drawn(dice, 0.3, 20)) * int(drawn(dice, 1, 200))


def integers(hs, dice):
    kind = dice.choice((hs.discrete_laplace, hs.discrete_gaussian))
    return kind(drawn(dice, 0.5, 20)) * int(drawn(dice, 1, 200))


def unlike(hs, dice):
    return hs.compose((given(hs, dice), int(drawn(dice, 1, 20))), (noise(hs, dice), 1), (promises(hs, dice), 1))


RUNS = (few, promises, response, choices, batches, noise, integers, unlike)
ADJACENCY = {choices: {"adjacency": "replace_one"}}
QUESTIONS = {
    "advantage": lambda hs, dice: (hs.advantage, ()),
    "tradeoff": lambda hs, dice: (hs.tradeoff, (drawn(dice, 1e-6, 0.9),)),
    "far tradeoff": lambda hs, dice: (hs.true_positive_rate, (drawn(dice, 1e-30, 1e-6),)),
    "posterior": lambda hs, dice: (
        lambda run, tail, **options: hs.posterior(run, 0.3, tail=tail, **options),
        (drawn(dice, 1e-12, 0.9),),
    ),
    "bayes_risk": lambda hs, dice: (hs.bayes_risk, (drawn(dice, 1e-3, 0.99),)),
    "mu_gdp": lambda hs, dice: (hs.mu_gdp, (drawn(dice, 1e-8, 1e-2),)),
}


class Counted:
    """How many deltas are asked."""

    def __init__(self, query) -> None:
        self.n, deltas = 0, query._Settings.deltas

        def counted(settings, flat, like):
            self.n += len(flat)
            return deltas(settings, flat, like)

        query._Settings.deltas = counted


def spent(ask, run, *at, **options) -> float:
    """Seconds of one question, answered or refused, about a run built anew."""
    start = time.process_time()
    try:
        ask(run(), *at, **options)
    except ArithmeticError:
        pass
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", nargs="*", choices=[[], *QUESTIONS])
    parser.add_argument("--n", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=0)
    parser.add_argument("--tree")
    said = parser.parse_args()
    hs = machine.library(said.tree)  # what is imported at its first use is no part of an answer
    counted = Counted(hs.query)
    rows: dict[str, list] = {kind: [] for kind in said.kind or QUESTIONS}
    for i in range(said.n):
        for make in RUNS:

            def run(make=make, i=i):
                return make(hs, random.Random(f"{said.seed} {make.__name__} {i}"))

            options = ADJACENCY.get(make, {})
            ends = [0.0]
            for digits in range(1, 7):
                bound = hs.epsilon(run(), 10.0**-digits, **options)
                ends.append(bound.estimate if bound.upper < math.inf else 1.0)
            one = math.fsum(spent(hs.delta, run, eps, **options) for eps in ends) / len(ends)
            for kind, found in rows.items():
                ask, at = QUESTIONS[kind](hs, random.Random(f"{said.seed} {make.__name__} {i} {kind}"))
                counted.n = 0
                took = spent(ask, run, *at, **options)
                found.append((took / one, took, counted.n, f"{make.__name__} {i}, {at}: one delta {1e3 * one:.3g} ms"))
    print("| question | deltas: median | 90% | most | times: median | 90% | most | slowest |")
    print("|---|---|---|---|---|---|---|---|")
    for kind, found in rows.items():
        at: list[float] = []
        for i in (2, 0):
            ordered = sorted(row[i] for row in found)
            at += ordered[len(ordered) // 2], ordered[math.ceil(0.9 * len(ordered)) - 1], ordered[-1]
        print(f"| {kind} | " + " | ".join(f"{r:.3g}" for r in at) + f" | {1e3 * max(r[1] for r in found):.3g} ms |")
        for row in sorted(found, reverse=True)[: said.show]:
            print("  {:.3g} times, {:.3g} s, {} deltas, {}".format(*row))


if __name__ == "__main__":
    main()
