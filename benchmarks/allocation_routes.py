"""Random settings of random allocation, answered by the contour and by the grid made of one epoch's tails.

    python benchmarks/allocation_routes.py FILE [settings=10000]

The two share the transform of one epoch on a line, and nothing after it. FILE gets one line of JSON a setting; a run
that was cut short goes on where it stopped. At the end the count, settings that a route did not answer, settings whose
certified intervals do not meet, and the largest distance of two estimates over the sum of the widths."""

from __future__ import annotations

import json
import math
import pathlib
import signal
import sys

import numpy as np

import hockeystick as hs

SECONDS, WIDTH = 8, 0.01  # of processor time


def setting(index: int):
    """What is asked as number `index`: noise, steps, epochs, eps up to seven deviations of the loss, and direction.
    Beyond sigma = 8, below 0.28, and beyond sqrt(steps) sigma = 60 the tails of an epoch are out of reach, beyond 45
    mostly: a tenth of the settings go there."""
    rng = np.random.default_rng([20_262, index])
    far = 60 if index % 10 == 0 else 45
    sigma = math.exp(rng.uniform(math.log(0.28), math.log(8.0)))
    steps = int(math.exp(rng.uniform(math.log(2), math.log((far / sigma) ** 2))))
    epochs = int(math.exp(rng.uniform(0.0, math.log(300.0))))
    direction = ("remove", "add")[rng.integers(2)]
    spread = math.sqrt(epochs * min(math.expm1(min(sigma**-2.0, 30.0)) / steps, sigma**-2.0))
    return sigma, steps, epochs, spread * rng.uniform(0.1, 7.0), direction


def ask(index: int) -> dict:
    sigma, steps, epochs, eps, direction = setting(index)
    run = hs.random_allocation(hs.gaussian(sigma), steps) * epochs
    out: dict = {"index": index, "asked": [sigma, steps, epochs, eps, direction]}
    for route, rtol in (("contour", None), ("pld", WIDTH)):
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            b = hs.delta(run, eps, direction=direction, route=route, rtol=rtol)
            out[route] = [b.lower, b.estimate, b.upper]
        except (hs.AccuracyError, TimeoutError) as error:
            out[route] = str(error)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    return out


def _late(*_: object) -> None:
    raise TimeoutError(f"no answer within {SECONDS} s")


def summary(rows: list[dict]) -> str:
    both = [r for r in rows if not isinstance(r["contour"], str) and not isinstance(r["pld"], str)]
    missed, far, wide = [], 0.0, []
    for r in both:
        (a, x, b), (c, y, d) = r["contour"], r["pld"]
        if max(a, c) > min(b, d):
            missed.append(r["index"])
        far = max(far, abs(x - y) / max(b - a + d - c, 1e-320))
        wide.append((d - c) / d if d > 0 else 0.0)
    none = {route: sum(isinstance(r[route], str) for r in rows) for route in ("contour", "pld")}
    narrow = f"median width of the grid {np.median(wide):.2g} of delta, largest {max(wide):.2g}" if wide else ""
    return (
        f"{len(rows)} settings, {len(both)} answered by both (not by the contour {none['contour']}, not by pld "
        f"{none['pld']}); intervals that do not meet: {len(missed)} {missed[:9]}; largest distance {far:.3g} widths; "
        f"{narrow}"
    )


def main() -> None:
    file = pathlib.Path(sys.argv[1])
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
    rows = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    done = {r["index"] for r in rows}
    signal.signal(signal.SIGPROF, _late)
    with file.open("a") as out:
        for index in range(count):
            if index not in done:
                rows.append(ask(index))
                print(json.dumps(rows[-1]), file=out, flush=True)
    print(summary(rows))


if __name__ == "__main__":
    main()
