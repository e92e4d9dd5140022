"""The PRV route: power against squaring, against prv_accountant, and the FFT error against its bound.

    python benchmarks/bench_prv.py [--peer]

Every answer is checked (brackets of one problem intersect) before a time is printed. Peak memory is that of a
fresh process for each run. `--peer` runs prv_accountant (0.2) on the same problems at the same eps_error.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import time

import numpy as np

CASES = [  # sigma, q, k, delta
    (1.0, 0.01, 1000, 1e-5),
    (0.8, 0.01, 1000, 1e-5),
    (1.0, 0.01, 1000, 1e-12),
    (2.0, 0.001, 10**6, 1e-6),
    (5.0, 0.0001, 10**7, 1e-8),
    (0.3, 0.01, 100, 1e-5),
    (100.0, 0.01, 10**5, 1e-6),
    (100.0, 1.0, 10**4, 1e-12),
    (316.22776601683796, 1.0, 10**5, 1e-13),
]


def run_ours(case, how):
    from hockeystick.routes import prv
    from hockeystick.what.law import gaussian_loss

    sigma, q, k, delta = case
    found = prv.root(((gaussian_loss(1 / sigma, q), k),), delta, None, eps_error=0.01, how=how)
    return [found.lower, found.estimate, found.upper]


def run_peer(case, _):
    from prv_accountant import PoissonSubsampledGaussianMechanism, PRVAccountant

    sigma, q, k, delta = case
    prv = PoissonSubsampledGaussianMechanism(noise_multiplier=sigma, sampling_probability=q)
    accountant = PRVAccountant(prv, max_self_compositions=k, eps_error=0.01, delta_error=delta / 1000)
    return list(accountant.compute_epsilon(delta=delta, num_self_compositions=[k]))


def measured(name, case, queue):
    run, how = {"power": (run_ours, "power"), "squaring": (run_ours, "squaring"), "peer": (run_peer, "")}[name]
    try:
        start = time.perf_counter()
        answer = run(case, how)
        cold = time.perf_counter() - start
        warm = cold
        for _ in range(3 if cold < 3 else 0):
            start = time.perf_counter()
            run(case, how)
            warm = min(warm, time.perf_counter() - start)
        queue.put((answer, cold, warm, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))
    except Exception as error:
        queue.put((f"{type(error).__name__}: {error}"[:60], 0.0, 0.0, 0.0))


def fresh(name, case):
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=measured, args=(name, case, queue))
    process.start()
    out = queue.get(timeout=120)
    process.join()
    return out


def fft_error():
    """Largest measured relative error of a transform, in units of its bound."""
    from hockeystick.grid import _fft

    rng = np.random.default_rng(0)
    worst = 0.0
    for n in (1 << 10, 1 << 14, 1 << 18, 45 << 10, 25 << 12, 27 << 12):
        x = _fft.zeros(n)
        x[:] = rng.random(n) if n % 5 else np.exp(-np.linspace(0, 40, n))
        exact = np.fft.rfft(x.astype(np.longdouble))
        error = np.linalg.norm((_fft.forward(x) - exact).astype(complex))
        worst = max(worst, error / np.linalg.norm(exact.astype(complex)) / _fft.error_upper(n))
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", action="store_true", help="also run prv_accountant")
    names = ["power", "squaring"] + (["peer"] if parser.parse_args().peer else [])
    print(f"FFT error / bound: {fft_error():.3g}")
    for case in CASES:
        results = {name: fresh(name, case) for name in names}
        lower, estimate, upper = results["power"][0]
        other = results["squaring"][0]
        if not (lower <= other[2] and other[0] <= upper and lower <= estimate <= upper):
            raise AssertionError(f"brackets of {case} do not meet: {results}")
        print(f"sigma={case[0]:g} q={case[1]:g} k={case[2]:g} delta={case[3]:g}")
        for name, (answer, cold, warm, memory) in results.items():
            shown = answer if isinstance(answer, str) else "[{:.6f}, {:.6f}, {:.6f}]".format(*answer)
            ratio = warm / results["power"][2]
            times = f"cold {cold:8.4f} s  warm {warm:8.4f} s ({ratio:7.1f}x)"
            print(f"  {name:9} {shown:34} {times}  {memory:5.0f} MB", flush=True)


if __name__ == "__main__":
    main()
