"""Reference eps of the benchmark problems that tests/reference does not hold: prints the table TRUTH of cases.py.

delta(eps) = (1/pi) int_0^inf Re[ M(t)^k e^{-eps t} / (t (1+t)) ] dy on t = c + iy, by the trapezoid rule of step
2 pi/P; eps is the root of log delta. Equal steps: mpmath with 50 digits. Many distinct steps, and q k of order 1 (which
needs thousands of nodes) or small sigma: long double. Both are repeated on a second line, at 0.8 c; their disagreement
in delta is printed. "Both" is the larger of the two orders. Nothing of the package is used.

Run: python benchmarks/make_truth.py [NAME ...]
"""

from __future__ import annotations

import sys

import mpmath as mp
import numpy as np
from scipy.optimize import minimize_scalar

import cases

mp.mp.dps = 50
EXTENDED = np.longdouble


def _double_cgf(distinct, add, t):
    """log M(t) summed over the steps, in double: good enough to place the line."""
    total = 0.0
    for sigma, q, k in distinct:
        z = np.arange(-17, (t + 1) / sigma + 17, 0.12 * min(1.0, sigma))
        loss = np.log1p(q * np.expm1(np.minimum((2 * sigma * z - 1) / (2 * sigma**2), 600.0)))
        power = -z * z / 2 + (-t * loss if add else (1 + t) * loss)
        top = power.max()
        total += k * (top + np.log(np.exp(power - top).sum() * (z[1] - z[0]) / np.sqrt(2 * np.pi)))
    return total


def _line(distinct, add, eps, slack):
    """Abscissa c and period P: the aliases at -P and +P are both e^-slack or less; the saddle's log height."""
    sample = distinct[:: max(1, len(distinct) // 200)]
    scale = sum(k for *_, k in distinct) / sum(k for *_, k in sample)

    def height(s):
        t = np.exp(s)
        return scale * _double_cgf(sample, add, t) - eps * t - np.log(t) - np.log1p(t)

    found = minimize_scalar(height, bounds=(-10, 7), method="bounded", options={"xatol": 1e-4})
    t0, top = float(np.exp(found.x)), float(found.fun)
    return t0 * (slack + 12 - top) / (2 * slack + 24 - top), (2 * slack + 24 - top) / t0, top


def _exact_delta(distinct, add, eps, line, shrink=1.0):
    """delta at 50 digits for a few distinct steps."""
    c, period = mp.mpf(line[0] * shrink), mp.mpf(line[1] / shrink)
    dy, eps = 2 * mp.pi / period, mp.mpf(eps)
    laws = []
    for sigma, q, k in distinct:
        h, sigma, q = mp.mpf("0.12") * min(1, sigma), mp.mpf(sigma), mp.mpf(q)
        weights, turns = [], []
        for j in range(int(-17 / h), int(((c + 1) / sigma + 17) / h) + 1):
            z = j * h
            loss = mp.log1p(q * mp.expm1((2 * sigma * z - 1) / (2 * sigma**2)))
            weights.append(mp.exp(-z * z / 2 + (-c * loss if add else (1 + c) * loss)) * h / mp.sqrt(2 * mp.pi))
            turns.append(mp.expj(-dy * loss if add else dy * loss))
        laws.append((weights, turns, k))
    total, small, node = mp.mpf(0), 0, 0
    while small < 9:
        t = mp.mpc(c, node * dy)
        power = sum(k * mp.log(mp.fsum(weights)) for weights, _, k in laws) - eps * t
        value = (mp.exp(power) / (t * (1 + t))).real
        total += value / 2 if node == 0 else value
        small = small + 1 if abs(value) < mp.mpf("1e-30") * abs(total) else 0
        laws = [([w * r for w, r in zip(ws, rs, strict=True)], rs, k) for ws, rs, k in laws]
        node += 1
    return total * dy / mp.pi


def _extended_delta(distinct, add, eps, line, shrink=1.0):
    """delta in long double for many distinct steps, a block of equal mesh at a time."""
    c, period = EXTENDED(line[0] * shrink), EXTENDED(line[1] / shrink)
    dy = 2 * EXTENDED(np.pi) / period
    nodes = 20_000 if len(distinct) == 1 else 2000 if len(distinct) <= 100 else 400 if len(distinct) <= 1000 else 64
    table = np.array(distinct, dtype=EXTENDED)
    power = np.zeros(nodes, dtype=np.clongdouble)
    for at in range(0, len(table), 2000):
        sigma, q, k = (column[:, None] for column in table[at : at + 2000].T)
        h = EXTENDED(0.2) * min(EXTENDED(1), sigma.min())
        z = np.arange(-11, float((c + 1) / sigma.min()) + 11, float(h)).astype(EXTENDED)
        h = z[1] - z[0]
        loss = np.log1p(q * np.expm1((2 * sigma * z - 1) / (2 * sigma**2)))
        weight = np.exp(-z * z / 2 + (-c * loss if add else (1 + c) * loss)) * h
        weight = (weight / np.sqrt(2 * np.arccos(EXTENDED(-1)))).astype(np.clongdouble)
        angle = dy * (-loss if add else loss)
        start, turn = weight, np.exp(1j * angle)
        for node in range(nodes):
            if node % 64 == 0:  # or the rounding of the turns adds up
                weight = start * np.exp(1j * node * angle)
            power[node] += (k[:, 0] * np.log(weight.sum(axis=1))).sum()
            weight *= turn
    t = c + 1j * dy * np.arange(nodes)
    value = (np.exp(power - EXTENDED(eps) * t) / (t * (1 + t))).real
    if abs(value[-1]) > 1e-16 * abs(value.sum()):
        raise ArithmeticError("too few nodes")
    return (value.sum() - value[0] / 2) * dy / np.arccos(EXTENDED(-1))


def eps_of(case):
    """(eps, relative disagreement of delta on two lines) of a case in the worse order."""
    distinct = [(step.sigma, step.q, step.k) for step in case.steps]
    sparse = all(q * k <= 1 and q < 1e-4 for _, q, k in distinct)
    many = len(distinct) > 4 or sparse or min(distinct)[0] < 0.5
    delta, slack = (_extended_delta, 36) if many else (_exact_delta, 80)
    roots = []
    for add in (False, True):
        low, high = 0.0, 1.0
        f = {}
        target = float(np.log(case.delta))

        def chernoff(e, add=add):
            return _line(distinct, add, e, slack)[2]

        while chernoff(high) > target:
            low, high = high, 2 * high
        for _ in range(12):
            mid = (low + high) / 2
            low, high = (mid, high) if chernoff(mid) > target else (low, mid)
        number = (lambda x: EXTENDED(x)) if many else mp.mpf
        log = np.log if many else mp.log
        goal = log(number(case.delta))
        if sparse:  # the curve is far below its Chernoff bound: bisect on the curve itself, on a line for the bulk
            line, (low, high) = _line(distinct, add, low, slack), (0.0, low)
            for _ in range(9):
                mid = (low + high) / 2
                above = delta(distinct, add, mid, line) > case.delta
                low, high = (mid, high) if above else (low, mid)
            low = high = max(low, 1e-9)
        line = _line(distinct, add, low, slack)
        a, b = number(low), number(low) * (1 - number(2) ** -7)
        for e in (a, b):
            f[e] = log(delta(distinct, add, e, line)) - goal
        for _ in range(9):
            new = b - f[b] * (b - a) / (f[b] - f[a])
            a, b = b, new
            f[b] = log(delta(distinct, add, b, line)) - goal
            if abs(f[b]) < (1e-10 if sparse else 1e-15 if many else 1e-25):
                break
        other = log(delta(distinct, add, b, line, 0.8)) - goal
        roots.append((b, float(abs(other))))
    return max(roots)


def main(names):
    for case in cases.PROBLEMS:
        if case.by_script and (not names or case.name in names):
            eps, other = eps_of(case)
            found = mp.nstr(mp.mpf(str(eps)), 22)
            print(f'    "{case.name}": "{found}",  # two lines agree to {other:.0e}', flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
