"""Individual accounting: `charge` against a measured copy, per-record epsilons, growth with records and steps.

    python benchmarks/bench_individual.py [--records 1e8] [--eps-records 1e6] [--threads 2] [--growth FILE.png]
    python benchmarks/bench_individual.py --disk FOLDER [--records 1e9]     state on disk: 20 bytes a record of free
        space

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
        del filter, mask, norms
    print(
        "peak resident memory, norms of the caller included:"
        f" {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB"
    )


def bench_disk(n, folder, threads):
    """Two steps with the state in a file of the caller's, and durable; the answers agree, and the second survives
    reopening."""
    from pathlib import Path
    from tempfile import TemporaryDirectory

    norms = np.random.default_rng(1).random(n, dtype=np.float32)
    norms[::7] = 3.0
    with TemporaryDirectory(dir=folder) as name:
        path = Path(name)
        lent = np.memmap(path / "lent", np.int64, "w+", shape=n)
        kept = {
            "words lent, memory-mapped": hs.IndividualGDPFilter(n, budget_mu=1.7, n_threads=threads, words=lent),
            "durable, sync": hs.IndividualGDPFilter(n, budget_mu=1.7, n_threads=threads, path=path / "state"),
        }
        mask = np.empty(n, bool)
        for label, filter in kept.items():
            times = []
            for _ in range(2):
                start = time.perf_counter()
                filter.charge(norms, sigma=1.0, out=mask)
                times.append(time.perf_counter() - start)
            sample = slice(0, n, max(1, n // 10_000))
            assert np.array_equal(mask[sample], norms[sample] != 3.0)
            size = sum(file.stat().st_size for file in path.glob("lent" if "lent" in label else "state*"))
            print(
                f"{label}: {n:.0e} records, {size / n:.2f} bytes a record on disk, steps of {times[0]:.2f} and"
                f" {times[1]:.2f} s"
            )
        spent = kept["words lent, memory-mapped"].spent_mu_upper(np.arange(0, n, max(1, n // 10_000)))
        kept["durable, sync"].close()
        start = time.perf_counter()
        with hs.IndividualGDPFilter.open(path / "state", n_records=n, n_threads=threads) as filter:
            print(f"opened and checked in {time.perf_counter() - start:.1f} s")
            assert filter.steps == 2
            assert np.array_equal(spent, filter.spent_mu_upper(np.arange(0, n, max(1, n // 10_000))))


def problem(n, levels=32, steps=1000):
    """Counts of n records over levels uniform in 1/sigma^2, concentrated on a few levels each."""
    rng = np.random.default_rng(0)
    share = rng.dirichlet(np.full(levels, 0.3), min(n, 10_000))
    counts = rng.multinomial(steps, share).astype(np.int32)
    return np.resize(counts, (n, levels)), 1 / np.sqrt(np.arange(1, levels + 1) / levels)


def check(counts, sigmas, upper, excess, q=0.01, delta=1e-5):
    for i in np.linspace(0, min(len(counts), 10_000) - 1, 8).astype(int):
        steps = [
            (hs.poisson_subsampled(hs.gaussian(s), q), int(k)) for s, k in zip(sigmas, counts[i], strict=True) if k
        ]
        bound = hs.epsilon(hs.compose(*steps), delta)
        assert bound.lower <= upper[i] <= bound.upper * (1 + 1e-4) + excess


def bench_epsilons(n, threads):
    counts, sigmas = problem(n)
    start = time.perf_counter()
    found = hs.individual_epsilons(counts, sigmas=sigmas, q=0.01, delta=1e-5, n_threads=threads)
    seconds = time.perf_counter() - start
    check(counts, sigmas, found.upper, 0.0)
    print(
        f"individual_epsilons, contour, {n:.0e} records x 32 levels, {threads} threads: {seconds:.2f} s, "
        f"{seconds / n * 1e6:.2f} us a record ({found.wider} wider than 1e-3)"
    )


def bench_plancherel(n):
    """Plancherel against an inverse transform a record, on the same levels; both at the contour's accuracy of the
    mesh."""
    from hockeystick.individual import fft_records

    counts, sigmas = problem(n)
    start = time.perf_counter()
    levels = fft_records.prepare(1 / sigmas, np.full(32, 0.01), False, 1000.0, counts, 1e-5, fft_records.EPS_ERROR, 1)
    weights = fft_records._weights(levels)
    prepared = time.perf_counter() - start
    start = time.perf_counter()
    upper = fft_records._solve(levels, counts, 1e-5, *weights)
    plancherel = (time.perf_counter() - start) / n
    check(counts, sigmas, upper, 2.2 * fft_records.EPS_ERROR)
    kept, some = levels.log_abs.shape[1], min(n, 20)
    start = time.perf_counter()
    for row in counts[:some]:
        spectrum = np.zeros(levels.n // 2 + 1, complex)
        spectrum[:kept] = np.exp(row @ levels.log_abs + 1j * (row @ levels.angle))
        np.fft.irfft(spectrum, levels.n)
    direct = (time.perf_counter() - start) / some
    print(
        f"fft: {levels.n} points, {kept} frequencies matter, prepared in {prepared:.2f} s; a record: Plancherel with"
        f" its root {plancherel * 1e6:.0f} us, one inverse transform alone {direct * 1e6:.0f} us"
        f" ({direct / plancherel:.0f} times)"
    )


def growth(path, threads):
    """Time of the two kernels against records, and of the epsilons against steps."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    def individual(counts, sigmas):
        return hs.individual_epsilons(counts, sigmas=sigmas, q=0.01, delta=1e-5, n_threads=threads)

    sizes = [10**k for k in range(3, 8)]
    charge, eps = [], []
    for n in sizes:
        filter, norms, mask = (
            hs.IndividualGDPFilter(n, budget_mu=1e3, n_threads=threads),
            np.ones(n, np.float32),
            np.empty(n, bool),
        )
        charge.append(best(lambda f=filter, x=norms, m=mask: f.charge(x, sigma=10.0, out=m), 3))
        if n <= 10**6:
            counts, sigmas = problem(n)
            eps.append(best(lambda c=counts, s=sigmas: individual(c, s), 1))
    steps = [10**k for k in range(1, 7)]
    by_steps = []
    for k in steps:
        counts, sigmas = problem(10_000, steps=k)
        by_steps.append(best(lambda c=counts, s=sigmas: individual(c, s), 1))
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
    left.loglog(sizes, charge, "o-", label="charge, one step")
    left.loglog(sizes[: len(eps)], eps, "s-", label="individual_epsilons, 32 levels")
    left.set(xlabel="records", ylabel="seconds")
    left.legend()
    right.semilogx(steps, by_steps, "s-", color="C1")
    right.set(xlabel="steps a record", ylabel="seconds for 1e4 records", ylim=(0, None))
    figure.savefig(path, dpi=110)
    print(f"growth: charge {charge}, epsilons {eps}, by steps {by_steps}; picture {path}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=float, default=1e8, help="records of `charge`; 0 leaves it out")
    parser.add_argument("--eps-records", type=float, default=1e6, help="records of the epsilons; 0 leaves them out")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--growth", metavar="FILE.png", help="plot of time against records and steps")
    parser.add_argument("--disk", metavar="FOLDER", help="only this: --records records with their state on disk")
    args = parser.parse_args()
    print(machine.describe())
    if args.disk:
        return bench_disk(int(args.records), args.disk, args.threads)
    if args.records:
        bench_charge(int(args.records), args.threads)
    if args.eps_records:
        bench_epsilons(int(args.eps_records), args.threads)
        bench_plancherel(1000)
    if args.growth:
        growth(args.growth, args.threads)


if __name__ == "__main__":
    main()
