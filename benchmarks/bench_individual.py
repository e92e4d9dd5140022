"""Individual accounting: `charge` against a measured copy, per-record epsilons, growth with records and steps.

    python benchmarks/bench_individual.py [--records 1e8] [--eps-records 1e6] [--threads 2]

Every part checks its answers before it reports a time.
"""

from __future__ import annotations

import argparse
import os
import resource
import time

import numpy as np

import hockeystick as hs
import machine


def best(call, repeat=5):
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def copy_rate(n, threads):
    """Bytes moved a second (read and written) by numpy copying arrays of 8 n bytes on `threads` threads."""
    from concurrent.futures import ThreadPoolExecutor

    a, b = np.ones(n), np.ones(n)
    parts = np.array_split(np.arange(threads + 1), 1)[0] * n // threads
    with ThreadPoolExecutor(threads) as pool:

        def run():
            list(pool.map(lambda i: np.copyto(b[parts[i] : parts[i + 1]], a[parts[i] : parts[i + 1]]), range(threads)))

        return 16 * n / best(run)


def bench_charge(n, threads):
    rate = copy_rate(min(n, 10**8), threads)
    print(f"copy, {threads} threads: {rate / 1e9:.2f} GB/s read and written")
    for kind in (np.float32, np.float64):
        norms = np.random.default_rng(1).random(n, dtype=kind)
        base = resident()
        filter, mask = hs.IndividualGDPFilter(n, budget_mu=1.0, n_threads=threads), np.empty(n, bool)
        filter.charge(norms, sigma=10.0, out=mask)
        own = resident() - base
        sample = np.arange(0, n, max(1, n // 1000))
        exact = norms[sample].astype(np.float64) ** 2 / 100
        spent = filter.spent_mu_upper(sample) ** 2
        assert np.all(spent >= exact) and np.all(spent <= exact * (1 + 1e-12) + 2.0**-48)
        moved = n * (norms.itemsize + 8 + 8 + 1)
        seconds = best(lambda f=filter, x=norms, m=mask: f.charge(x, sigma=10.0, out=m))
        assert mask.all()
        print(
            f"charge {n:.0e} {norms.dtype}: {seconds * 1e3:.1f} ms, {moved / seconds / 1e9:.2f} GB/s = "
            f"{moved / seconds / rate:.2f} of the copy; filter and mask {own / 1e9:.3f} GB"
        )
    print(
        f"peak resident memory, norms of the caller included: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB"
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=float, default=1e8)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    print(machine.describe())
    bench_charge(int(args.records), args.threads)


if __name__ == "__main__":
    main()
