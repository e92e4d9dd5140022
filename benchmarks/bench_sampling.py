"""Truncated Poisson sampling beside dp_accounting's TruncatedSubsampledGaussianDpEvent, both in this run: eps and time.

    python benchmarks/bench_sampling.py [--markdown] [--fine]

Every answer of ours is certified and checked before it is timed; the peer's must not lie below our lower end by more
than its grid. Add/remove differs most: the peer takes the replace-one pair in the truncating branch for every
adjacency, which no finer grid repairs. Times: processor time of one thread, as the machine may be shared; the run, or
the peer's event, is built beforehand; the median of calls whose deltas vary so that nothing remembered is timed; the
peer answers once or more within two seconds. With --fine the rows of replace_one, where both compute the same number,
also on a peer's grid ten times finer, whose error is still above ours."""

from __future__ import annotations

import argparse
import importlib.util
import time

import hockeystick as hs
import machine

GRID = 1e-4
"""The peer's default spacing of losses: its eps may be off by a few of these."""

# n, p, B, sigma, k, delta
RUNS = (
    (10_000, 0.01, 100, 1.0, 500, 1e-5),
    (10_000, 0.01, 120, 1.0, 500, 1e-5),
    (10_000, 0.01, 150, 1.0, 500, 1e-5),
    (1_000, 0.1, 110, 2.0, 200, 1e-6),
    (50_000, 0.004, 256, 0.8, 1_000, 1e-6),
    (200, 1.0, 20, 3.0, 50, 1e-5),
    (1_000_000, 0.001, 1_050, 0.7, 2_000, 1e-7),
    (100, 0.5, 40, 4.0, 100, 1e-5),
)
ADJACENCIES = ("add_remove", "zero_out", "replace_one")


def ours(row):
    n, p, size, sigma, k, _ = row
    return hs.truncated_poisson_subsampled(hs.gaussian(sigma), p, dataset_size=n, max_batch=size) * k


def peer(row, adjacency, grid=GRID):
    """A function delta -> eps."""
    import dp_accounting as dpa

    n, p, size, sigma, k, _ = row
    relation = dpa.NeighboringRelation
    names = {"add_remove": "ADD_OR_REMOVE_ONE", "zero_out": "REPLACE_SPECIAL", "replace_one": "REPLACE_ONE"}
    event = dpa.dp_event.TruncatedSubsampledGaussianDpEvent(
        dataset_size=n, sampling_probability=p, truncated_batch_size=size, noise_multiplier=sigma
    )

    def ask(delta):
        accountant = dpa.pld.PLDAccountant(getattr(relation, names[adjacency]), grid)
        return accountant.compose(event, k).get_epsilon(delta)

    return ask


def seconds(ask, delta, enough):
    """Median processor time of a call with slightly different deltas, until `enough` seconds have passed."""
    times = []
    while not times or (sum(times) < enough and len(times) < 500):
        start = time.process_time()
        ask(delta * (1 + 1e-6 * len(times)))
        times.append(time.process_time() - start)
    return sorted(times)[len(times) // 2]


def line(row, adjacency, with_peer, fine):
    delta, run = row[-1], ours(row)
    bound = hs.epsilon(run, delta, adjacency=adjacency)
    assert bound.certified and bound.lower <= bound.estimate <= bound.upper
    took = seconds(lambda d: hs.epsilon(run, d, adjacency=adjacency), delta, 0.2)
    out = [
        f"n={row[0]} p={row[1]} B={row[2]} sigma={row[3]:g} k={row[4]}",
        adjacency,
        f"{bound.upper:.6f}",
        bound.route,
    ]
    out += [f"{bound.width / bound.estimate:.0e}", machine.pretty(took)]
    if with_peer:
        ask = peer(row, adjacency)
        eps = ask(delta)
        assert bound.lower <= eps + 10 * GRID, (row, adjacency, bound, eps)
        theirs = seconds(ask, delta, 2.0)
        out += [f"{eps:.6f}", machine.pretty(theirs), f"{eps / bound.upper:.4f}", f"{theirs / took:,.0f}"]
    if with_peer and fine:
        out += finer(row, adjacency, bound, took) if adjacency == "replace_one" else ["", "", ""]
    return out


def finer(row, adjacency, bound, took):
    """Error of the peer on its own grid and on one ten times finer, and how much longer that takes than our answer."""
    coarse = peer(row, adjacency)(row[-1])
    start = time.process_time()
    found = peer(row, adjacency, 0.1 * GRID)(row[-1])
    times = (time.process_time() - start) / took
    return [*(f"{x - bound.estimate:.1e}" for x in (coarse, found)), f"{times:,.0f}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--fine", action="store_true")
    options = parser.parse_args()
    markdown, fine = options.markdown, options.fine
    with_peer = importlib.util.find_spec("dp_accounting") is not None
    head = ["run", "adjacency", "eps", "route", "width", "time"]
    head += ["dp_accounting", "its time", "its eps / ours", "times faster"] if with_peer else []
    head += ["its error", "on a finer grid", "times faster then"] if with_peer and fine else []
    print(machine.describe(), flush=True)
    if markdown:
        print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for row in RUNS:
        for adjacency in ADJACENCIES:
            cells = line(row, adjacency, with_peer, fine)
            print("| " + " | ".join(cells) + " |" if markdown else "  ".join(cells), flush=True)


if __name__ == "__main__":
    main()
