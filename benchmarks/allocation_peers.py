"""Random allocation beside PLD_accounting and random-allocation, in one run: answers, widths and seconds.

    pip install PLD_accounting random-allocation pandas seaborn && python benchmarks/allocation_peers.py

Every interval or upper end of a peer must not contradict ours; seconds are the best of a few calls, after one that is
not counted (PLD_accounting compiles in the first); kept: of a run that was asked before. Upper ends alone have no
width: what is said is how far they lie above.
"""

from __future__ import annotations

import time

import hockeystick as hs
from hockeystick import scratch
from hockeystick.what import allocation_call

ROWS = ((1.0, 100, 1), (1.0, 100, 10), (2.0, 100, 10))
DELTA = 1e-5


def run_of(sigma: float, steps: int, epochs: int) -> hs.Run:
    return hs.random_allocation(hs.gaussian(sigma), steps) * epochs


def first_of(sigma: float, steps: int, epochs: int) -> tuple[float, float]:
    """Without the tables that another question left."""
    scratch._tables.clear()
    for kept in (allocation_call._line, allocation_call.about_end):
        kept.cache_clear()
    return ours(run_of(sigma, steps, epochs))


def ours(run: hs.Run) -> tuple[float, float]:
    b = hs.epsilon(run, DELTA)
    return b.lower, b.upper


def pld_accounting(sigma: float, steps: int, epochs: int) -> tuple[float, float]:
    from PLD_accounting.random_allocation_api import gaussian_allocation_epsilon_range

    upper, lower = gaussian_allocation_epsilon_range(delta=DELTA, sigma=sigma, num_steps=steps, num_epochs=epochs)
    return lower, upper


def renyi(sigma: float, steps: int, epochs: int) -> tuple[float, float]:
    from random_allocation import PrivacyParams, SchemeConfig, allocation_epsilon_direct

    params = PrivacyParams(sigma=sigma, num_steps=steps, num_epochs=epochs, delta=DELTA)
    return 0.0, allocation_epsilon_direct(params, SchemeConfig(allocation_direct_alpha_orders=list(range(2, 61))))


def timed(call, arguments, calls: int) -> tuple[tuple[float, float], float]:
    found, best = call(*arguments), float("inf")
    for _ in range(calls):
        start = time.perf_counter()
        call(*arguments)
        best = min(best, time.perf_counter() - start)
    return found, best


def main() -> None:
    print(
        "| sigma, steps, epochs | accountant | eps at delta 1e-5 | width | seconds | ours is faster by | narrower by |"
    )
    print("|---|---|---|---|---|---|---|")
    for row in ROWS:
        first = min(timed(first_of, row, 3)[1] for _ in range(3))
        (low, high), kept = timed(ours, (run_of(*row),), 50)
        name = ", ".join(f"{x:g}" for x in row)
        print(
            f"| {name} | hockeystick | {low:.10f} to {high:.10f} | {high - low:.1e} "
            f"| {first:.2g}, kept {kept:.2g} | | |"
        )
        for title, call in (("PLD_accounting", pld_accounting), ("random-allocation, Renyi", renyi)):
            try:
                (below, above), seconds = timed(call, row, 1)
            except ImportError as error:
                print(f"| {name} | {title} | not installed ({error.name}) | | | | |")
                continue
            assert below <= high and low <= above, f"{title} at {row}: [{below}, {above}] against [{low}, {high}]"
            width = above - (below or low)
            print(
                f"| {name} | {title} | {f'{below:.4f} to ' if below else 'at most '}{above:.4f} | {width:.1e} "
                f"| {seconds:.2g} | {seconds / first:,.0f}, kept {seconds / kept:,.0f} | {width / (high - low):.1e} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
