"""Finite-sample constants of the Edgeworth expansion of order 1, as functions of a run's standardised moments.

A constant D bounds sup_x |F(x) - G_1(x)|, F the distribution function of the composed loss and G_1 its expansion of
order 1 [WGZ22, Lemma 4.3; DGG24, Thms 2.1, A.2, A.3, A.5] [theory: edgeworth.finite-sample]. Four versions: "inid" for
steps that differ, "iid" for equal steps, and for both the same with regular characteristic functions: "regular" for
equal steps whose standardised characteristic function is at most kappa < 1 beyond 2 pi T1/K3t, "inid_regular" for any
steps. Each holds for every value of a free parameter e in (0, 1/3), over which it is minimised.

"inid_regular" is made like [DGG24, Thm A.4] [theory: edgeworth.inid-regular]: smoothing at T = 16 pi^4 n^2/K3t^4; below
b = 2 sqrt n/K3t the difference to the expansion by the terms of "inid"; from b to T both parts on their own: |f| <=
kappa, the product over the steps of what the modulus of each reaches beyond b (a step left out of the product counts as
1), (C/pi) kappa log(T/b); and the Gaussian part.

Symbols: n steps; averages over steps of moments about each step's own mean, over Bbar = (mean variance)^(1/2): K3 =
E|d|^3, K4 = E d^4, l3 = E d^3, K3t = K3 + mean of E|d| Var d / Bbar^3.

The bounds are proved, rounding included. Every term but the differences grows with every moment, so moments come
rounded up; `loose` is how far, relatively, K3t and K4 may then lie above the truth, and where a term falls with one of
them, or at the far limit of an integral, the lower value is taken. Differences of incomplete gamma and exponential
integrals are rounded up on their own; what is left, sums and products of positive terms, is enlarged by 1e-9 of itself.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..outward import DOWN, UP, Ends, U

VERSIONS = ("inid", "iid", "regular", "inid_regular")
C = 1.0253
"""Above sup 2 pi t |Psi(t)| = 1.02528964 of Prawitz' kernel Psi."""

CHI = 0.0991619136
"""sup |cos x - 1 + x^2/2| / |x|^3 = 0.09916191350..., rounded up; attained at 2 pi T1."""

T1 = 0.6359658
ENLARGE = 1 + 1e-9
_GRID = np.concatenate((np.geomspace(1e-6, 1e-2, 61), np.linspace(0.012, 0.33, 54)))


class Moments(NamedTuple):
    """Standardised moments of a run of n steps, rounded up; see the head of the file. l3 keeps its sign."""

    n: float
    K3: float
    K4: float
    l3: float
    K3t: float
    loose: float = 0.0

    def lower(self) -> Moments:
        return self._replace(K4=self.K4 * (1 - self.loose), K3t=self.K3t * (1 - self.loose))


def uniform_error_upper(moments: Moments, version: str, *, kappa=None, published: bool = False) -> float:
    """D >= sup |F - G_1|, where that is below 1; 1 says nothing, as G_1 may lie outside [0, 1].

    Parameters
    ----------
    moments : Moments
    version : "inid", "iid", "regular" or "inid_regular"
    kappa : float
        For "regular": a bound of the standardised characteristic function's modulus at and beyond 2 pi T1/K3t. For
        "inid_regular": a bound of that of the standardised sum at and beyond `frequency`.
    published : bool
        With the remainder's skewness term as published instead of the smaller one that its own derivation gives.
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        make = {"inid": _inid, "iid": _iid, "regular": _regular, "inid_regular": _inid_regular}[version]
        values = make(moments, _GRID, published, kappa)
    values = values[np.isfinite(values)]
    return min(1.0, float(values.min()) * ENLARGE) if values.size else 1.0


def _gamma_between_upper(lo, hi):
    """Gamma(3/2, lo) - Gamma(3/2, hi) from above; Gamma(3/2, x) = (sqrt(pi)/2) erfc(sqrt x) + sqrt(x) e^-x is known to
    (4 x + 32) units of itself, with erfc and exp within 16 of them."""
    near, far = (np.array([_gamma(float(x)) for x in np.atleast_1d(end)]) for end in (lo, hi))
    return np.maximum(0.0, near - far + (8 * np.atleast_1d(lo) + 64) * U * near)


def _gamma(x: float) -> float:
    return 0.5 * math.sqrt(math.pi) * math.erfc(math.sqrt(x)) + math.sqrt(x) * math.exp(-x) if x < 745 else 0.0


def _e1(x: float) -> Ends:
    """E1(x) = int_x^inf e^-u/u du: Stieltjes' fraction e^-x/(x + 1/(1 + 1/(x + 2/(1 + 2/(x + ...))))), whose
    convergents of even and odd depth enclose it, cut after a whole and after half a pair."""
    ends = []
    for tail in (x, math.inf):
        for n in range(80, 0, -1):
            tail = x + n / (1 + n / tail)
        ends.append(math.exp(-min(x, 745.0)) / tail)
    return Ends(min(ends) * (1 - 1e-12 - 2 * U * x), max(ends) * (1 + 1e-12 + 2 * U * x) + 1e-320)


def _square_exp_upper(slope: float, lo, hi: float):
    """int_lo^hi u^2 e^(-slope u^2) du from above."""
    plain = (hi**3 - lo**3) / 3
    if slope <= 0:
        return plain * math.exp(min(700.0, -slope * hi * hi))
    return np.minimum(plain, 0.5 * slope**-1.5 * _gamma_between_upper(slope * lo**2, slope * hi * hi))


def _leading(mo: Moments, e):
    """The leading terms of both moment-only versions [theory: edgeworth.finite-sample]."""
    n, K4, K3t = mo.n, mo.K4, mo.K3t
    return 0.1995 * K3t / math.sqrt(n) + (0.031 * K3t**2 + 0.327 * K4 * (1 / 12 + 1 / (4 * (1 - 3 * e) ** 2))) / n


def _factors(e):
    """q = (1-3e)^2, P1 and e1."""
    q = (1 - 3 * e) ** 2
    P1 = (144 + 48 * e + 4 * e**2 + 96 * np.sqrt(2 * e) + 32 * e + 16 * math.sqrt(2) * e**1.5) / 576
    return q, P1, np.exp(e**2 * (1 / 6 + 2 * P1 / q))


def _skewness_remainder(mo: Moments, lo, hi, published: bool):
    """|l3|/sqrt n times the integral of u^2 e^(-u^2/2) between the limits: the published bound of it, or itself
    [theory: edgeworth.skewness-term]."""
    scale = abs(mo.l3) / math.sqrt(mo.n)
    if published:
        return scale * _gamma_between_upper(lo, hi)
    return C * math.sqrt(2) / (6 * math.pi) * scale * _gamma_between_upper(lo**2 / 2, hi**2 / 2)


def _inid_rest(mo: Moments, e, published):
    """(skewness term, remainders without the smoothing's)."""
    n, K3, K4, l3 = mo.n, mo.K3, mo.K4, abs(mo.l3)
    (q, P1, e1), r = _factors(e), K4 / n
    a, b = np.minimum(np.sqrt(2 * e) * (n / K4) ** 0.25, frequency(mo)), frequency(mo.lower())
    slope = (1 - 4 * CHI - math.sqrt(r)) / 2
    s, beta, g = C / math.pi, 1 / 24 + P1 / (2 * q), math.gamma
    rest = (
        s * r**1.5 * 8 * g(4) / (48 * q)
        + s * r**2 * 16 * g(5) / (1152 * q)
        + s * r**1.25 * 2**2.5 * g(3.5) / (12 * q)
        + s * r**1.5 * 8 * g(4) / (72 * q)
        + s * r**1.75 * 2**3.5 * g(4.5) / (144 * q)
        + s * (e1 / 2) * r**2 * beta**2 * 16 * g(5)
        + s * (e1 / 6) * l3 * K4 * n**-1.5 * beta * 16 * g(5)
    )
    T3 = C * K3 / (6 * math.pi * math.sqrt(n)) * _square_exp_upper(slope - 8 * U, a, b)
    return 0.037 * e1 * l3**2 / n, _skewness_remainder(mo, a, b, published) + T3 + rest


def frequency(mo: Moments) -> float:
    """b = 2 sqrt n/K3t, in units of the standardised sum."""
    return 2 * math.sqrt(mo.n) / mo.K3t


def _inid(mo: Moments, e, published, _):
    n, l3, K3t = mo.n, abs(mo.l3), mo.K3t
    skew, rest = _inid_rest(mo, e, published)
    head = 81.2376 * K3t**4 / (16 * math.pi**4 * n**2) + 4.3394 * l3 * K3t**3 / (8 * math.pi**3 * n**2)
    return _leading(mo, e) + 0.054 * l3 * K3t / n + skew + head + rest


def _inid_regular(mo: Moments, e, published, kappa):
    n, K4, l3 = mo.n, mo.K4, abs(mo.l3)
    b, T = frequency(mo), 16 * math.pi**4 * n**2 / mo.K3t**4
    if not b < T / math.pi:
        return np.full(e.shape, math.inf)
    skew, rest = _inid_rest(mo, e, published)
    main = 0.327 * K4 * (1 / 12 + 1 / (4 * (1 - 3 * e) ** 2)) / n
    normal = C / math.pi * (0.5 * _e1(b * b / 2).upper + math.sqrt(2 / n) * l3 / 6 * _gamma(b * b / 2))
    # [theory: edgeworth.inid-regular]
    far = C / math.pi * kappa * math.log(8 * math.pi**4 * n**1.5 / mo.lower().K3t ** 3)
    return main + skew + _smoothing(T, n, l3) + rest + normal + far


def _smoothing(T: float, n: float, l3: float) -> float:
    return 1.2533 / T + 0.3334 * l3 / (T * math.sqrt(n)) + 14.1961 / T**4 + 4.3394 * l3 / (T**3 * math.sqrt(n))


def _iid_parts(mo: Moments, e):
    """(q, e2, e3, remainder common to both i.i.d. versions)."""
    n, K4, l3 = mo.n, mo.K4, abs(mo.l3)
    least = mo.lower().K4
    q = (1 - 3 * e) ** 2
    P2 = (
        48 * e * math.sqrt(K4 / n)
        + 4 * e**2 * K4 / n
        + 96 * np.sqrt(2 * e) * l3 / (least * n) ** 0.25
        + 32 * e * l3**2 / math.sqrt(least * n)
        + 16 * math.sqrt(2) * K4**0.25 * l3 * e**1.5 / n**0.75
    )
    e2 = np.exp(e**2 * (1 / 6 + 1 / (2 * q) + 2 * P2 / (576 * q)))
    e3 = np.exp(e**2 / 6 + e**2 / (2 * (1 - 3 * e)) ** 2)
    s, beta2, g = C / math.pi, K4 / 12 + 1 / (4 * q) + P2 / (576 * q), math.gamma
    rest = (s / (2 * q)) * (
        l3 * math.sqrt(2) * g(1.5) / (6 * n**1.5)
        + K4 * 8 * g(4) / (24 * n**2)
        + l3**2 * 8 * g(4) / (36 * n**2)
        + K4 * l3 * 2**3.5 * g(4.5) / (72 * n**2.5)
        + K4**2 * 16 * g(5) / (576 * n**3)
    )
    rest = rest + s * e2 * beta2 * 16 * g(5) / (8 * n**2) + s * e2 * l3 * beta2 * 2**3.5 * g(4.5) / (12 * n**1.5)
    return q, e2, e3, rest


def _iid(mo: Moments, e, published, _):
    n, K3, K4, l3, K3t = mo.n, mo.K3, mo.K4, abs(mo.l3), mo.K3t
    main = _leading(mo, e)
    _, e2, e3, rest = _iid_parts(mo, e)
    skew = (0.054 * l3 * K3t + 0.037 * e3 * l3**2) / n + 1.306 * (e2 - e3) * l3**2 / (36 * n)  # e2 > e3, term by term
    a, b = np.minimum(np.sqrt(2 * e) * (n / K4) ** 0.25, frequency(mo)), frequency(mo.lower())
    head = 81.2376 * K3t**4 / (16 * math.pi**4 * n**2) + 4.3394 * l3 * K3t**3 / (8 * math.pi**3 * n**2)
    T3 = C * 2**2.5 * K3 / (3 * math.pi * math.sqrt(n)) * _gamma_between_upper(a * a / 8, b * b / 8)
    return main + skew + head + _skewness_remainder(mo, a, b, published) + T3 + rest


def _regular(mo: Moments, e, published, kappa):
    n, K3, K4, l3 = mo.n, mo.K3, mo.K4, abs(mo.l3)
    q, e2, e3, rest = _iid_parts(mo, e)
    main = 0.327 * K4 * (1 / 12 + 1 / (4 * q)) / n + 0.037 * e3 * l3**2 / n + 1.306 * (e2 - e3) * l3**2 / (36 * n)
    (T, u1, u2, a2), (T_up, u1_up, u2_up, _) = (_limits(n, K3t) for K3t in (mo.K3t, mo.lower().K3t))
    l1 = np.minimum(np.sqrt(2 * e) * (n / K4) ** 0.25, u1)
    l2 = np.minimum(e * math.sqrt(n / (16 * K4)), u2)
    T3 = C * 2**2.5 * K3 / (3 * math.pi * math.sqrt(n)) * _gamma_between_upper(l2, u2_up)
    rest = _smoothing(T, n, l3) + _skewness_remainder(mo, l1, u1_up, published) + T3 + rest
    return main + rest + C / math.pi * (_normal_gap_upper(T, T_up) + kappa**n * math.log(T_up / a2))


def _limits(n: float, K3t: float) -> tuple[float, float, float, float]:
    """(T, u1, u2, a2) of the regular version, all falling with K3t."""
    far = 16 * math.pi**3 * n**2 / K3t**4
    return math.pi * far, far, 2**5 * math.pi**6 * n**4 / K3t**8, min(2 * T1 * math.pi * math.sqrt(n) / K3t, far)


def _normal_gap_upper(T: float, T_up: float) -> float:
    """What lies between two pairs of limits of E1, T somewhere in [T, T_up]."""
    w, gap = 1 - 4 * math.pi * CHI * T1, 0.0
    for one, two in (
        (
            lambda x: min(math.sqrt(x), x * x) * w / (2 * math.pi**2),
            lambda x: min(T1**2 * math.sqrt(x), x * x / math.pi**2) * w / 2,
        ),
        (lambda x: min(math.sqrt(x), x * x) / (2 * math.pi**2), lambda x: x * x / (2 * math.pi**2)),
    ):
        first, second = (Ends(_e1(f(T_up) * UP).lower, _e1(f(T) * DOWN).upper) for f in (one, two))
        gap += max(first.upper - second.lower, second.upper - first.lower)
    return gap
