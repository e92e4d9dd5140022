"""Route pld beside dp_accounting's and prv_accountant's: eps, true error, seconds, peak memory.

    python benchmarks/bench_pld.py [--peers] [--threads]

Every run is a process of its own. Every answer of ours must contain the truth at the width asked for before its time is
printed; dp_accounting runs first, and ours is then asked for the relative error that it achieved as well (at most 0.3,
at least 1e-5). `--threads` times one and two threads."""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import time

import machine

TIMEOUT_S = 120


def distinct_laplace(n):
    """(scale, q) of n different subsampled Laplace steps: scale 1 to 2, q about 0.3/sqrt(n)."""
    return [(1 + i / n, 0.3 / n**0.5 * (0.5 + i / n)) for i in range(n)]


CASES = {  # name: (kind, parameters, k, delta)
    "headline": ("gaussian", [(1.0, 0.01)], 1000, 1e-5),
    "sparse": ("gaussian", [(5.0, 1e-4)], 10**7, 1e-8),
    "100 distinct Laplace": ("laplace", distinct_laplace(100), 1, 1e-5),
    "1000 distinct Laplace": ("laplace", distinct_laplace(1000), 1, 1e-5),
    "Laplace k=1000": ("laplace", [(5.0, 0.1)], 1000, 1e-6),
}


def build(case):
    import hockeystick as hs

    kind, steps, k, _ = case
    base = hs.gaussian if kind == "gaussian" else hs.laplace
    return hs.compose(*((hs.poisson_subsampled(base(scale), q), k) for scale, q in steps))


def ours(case, rtol, n_threads):
    import hockeystick as hs

    answer = hs.epsilon(build(case), case[3], route="pld", rtol=rtol, n_threads=n_threads)
    assert answer.certified
    return answer.lower, answer.estimate, answer.upper


def google(case, *_):
    import dp_accounting as dpa

    kind, steps, k, delta = case
    noise = dpa.GaussianDpEvent if kind == "gaussian" else dpa.LaplaceDpEvent
    accountant = dpa.pld.PLDAccountant()
    for scale, q in steps:
        accountant.compose(dpa.PoissonSampledDpEvent(q, noise(scale)), k)
    return (accountant.get_epsilon(delta),) * 3


def microsoft(case, *_):
    from prv_accountant import PoissonSubsampledGaussianMechanism, PRVAccountant

    kind, ((scale, q),), k, delta = case
    assert kind == "gaussian"
    prv = PoissonSubsampledGaussianMechanism(noise_multiplier=scale, sampling_probability=q)
    accountant = PRVAccountant(prv, max_self_compositions=k, eps_error=0.01, delta_error=delta / 1000)
    return tuple(accountant.compute_epsilon(delta=delta, num_self_compositions=[k]))


def measured(run, case, arguments, queue):
    try:
        start = time.perf_counter()
        answer = run(case, *arguments)
        cold = warm = time.perf_counter() - start
        for _ in range(3 if cold < 5 else 0):
            start = time.perf_counter()
            run(case, *arguments)
            warm = min(warm, time.perf_counter() - start)
        queue.put((answer, cold, warm, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))
    except Exception as error:
        queue.put((f"{type(error).__name__}: {error}"[:60], 0.0, 0.0, 0.0))


def fresh(run, case, *arguments):
    """(answer or what went wrong, cold s, warm s, peak MB) of a process of its own."""
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=measured, args=(run, case, arguments, queue))
    process.start()
    if not _ready(queue, process):
        process.terminate()
        process.join()
        return f"stopped after {TIMEOUT_S} s", 0.0, 0.0, 0.0
    out = queue.get()
    process.join()
    return out


def _ready(queue, process) -> bool:
    end = time.monotonic() + TIMEOUT_S
    while time.monotonic() < end:
        if not queue.empty():
            return True
        if not process.is_alive():
            time.sleep(0.2)
            return not queue.empty()
        time.sleep(0.05)
    return False


def truth(case):
    """(lower, upper) of the true eps: the contour for Gaussian steps, route pld at 1e-5 otherwise."""
    import hockeystick as hs

    run = build(case)
    answer = hs.epsilon(run, case[3]) if case[0] == "gaussian" else hs.epsilon(run, case[3], route="pld", rtol=3e-5)
    return answer.lower, answer.upper


def show(name, result, true):
    answer, cold, warm, memory = result
    if isinstance(answer, str):
        print(f"  {name:26} {answer}", flush=True)
        return
    middle = 0.5 * (true[0] + true[1])
    errors = " ".join(f"{end / middle - 1:+.1e}" for end in answer)
    print(
        f"  {name:26} eps {answer[1]:.7g}  error {errors}  cold {machine.pretty(cold)}  "
        f"warm {machine.pretty(warm)}  {memory:.0f} MB",
        flush=True,
    )


def check(answer, true, rtol):
    assert answer[0] <= true[1] and true[0] <= answer[2], (answer, true)
    assert answer[2] - answer[0] <= rtol * answer[1] * (1 + 1e-9), (answer, rtol)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", action="store_true", help="also run dp_accounting and prv_accountant")
    parser.add_argument("--threads", action="store_true", help="also time two threads")
    options = parser.parse_args()
    print(machine.describe())
    for name, case in CASES.items():
        true = truth(case)
        print(f"{name}: {true[0]:.8g} <= eps <= {true[1]:.8g}")
        wanted = [1e-3]
        if options.peers and len(case[1]) <= 100:
            result = fresh(google, case)
            show("dp_accounting PLD", result, true)
            if not isinstance(result[0], str):
                wanted.append(min(0.3, max(1e-5, abs(result[0][1] / true[0] - 1))))
        if options.peers and case[0] == "gaussian":
            show("prv_accountant", fresh(microsoft, case), true)
        for rtol in wanted:
            for n in (1, 2) if options.threads else (1,):
                result = fresh(ours, case, rtol, n)
                if not isinstance(result[0], str):
                    check(result[0], true, rtol)
                show(f"pld rtol={rtol:.1e} threads={n}", result, true)


if __name__ == "__main__":
    main()
